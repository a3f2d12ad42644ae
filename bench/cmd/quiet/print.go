// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

const (
	// fixed and share are what attune may cost a program without a problem: seconds
	// of CPU time, and as much of the program's own for each second that it runs.
	fixed = 0.3
	share = 0.003
	// noSlower is how much longer such a program may take, as a ratio.
	noSlower = 1.01
	// reported is the least share of what attune costs that its report must tell of:
	// it is written before the end.
	reported = 0.95
)

// Print shows the figures and the goals.
func (d *document) Print() {
	var table present.Table
	table.Row("median", "plain", "attune run", "ratio", "program CPU", "of it probes", "attune CPU", "as reported")
	var ratios, told []float64
	changes := 0
	for _, r := range d.Results {
		pairs := measure.Ratios(r.Tuned, r.Plain)
		ratios, told = append(ratios, pairs...), append(told, measure.Ratios(r.Reported, r.Cost)...)
		changes += len(r.Changes)
		table.Row(r.title(), seconds(r.Plain), seconds(r.Tuned), fmt.Sprintf("%.3f", measure.Median(pairs)),
			seconds(r.Program), milliseconds(r.Inside), milliseconds(r.Cost), milliseconds(r.Reported))
		d.Goals = append(d.Goals, present.Goal{
			Name: fmt.Sprintf("%s: CPU time of attune beyond %.1f %%", r.title(), 100*share), Value: present.Figure(r.beyond()), Unit: "s", Limit: fixed,
		})
		if len(pairs) >= each {
			d.Goals = append(d.Goals, present.Goal{Name: r.title() + ": time with / without attune", Value: present.Figure(measure.Median(pairs)), Limit: noSlower})
		}
	}
	fmt.Println()
	table.Print(os.Stdout)
	d.Goals = append(d.Goals,
		present.Goal{Name: "time with / without attune, all pairs", Value: present.Figure(measure.Median(ratios)), Limit: noSlower},
		present.Goal{Name: "reported / measured CPU time of attune", Value: present.Figure(measure.Median(told)), Limit: reported, AtLeast: true},
		present.Goal{Name: "wrong changes", Value: present.Figure(changes), Limit: 0},
		present.Goal{Name: "programs that cannot run here", Value: present.Figure(len(d.Missing)), Limit: 0})
	for _, m := range d.Missing {
		fmt.Println("not run:", m)
	}
}

func seconds(values []float64) string { return present.Number(measure.Median(values)) + " s" }

func milliseconds(values []float64) string {
	return present.Number(1000*measure.Median(values)) + " ms"
}
