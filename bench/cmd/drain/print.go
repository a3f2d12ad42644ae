// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/attune-hpc/attune/bench/internal/present"
)

func (d *document) addGoals(l load, f figure) {
	if l.goal == 0 {
		d.Goals = append(d.Goals,
			present.Goal{Name: l.name + ": lost", Value: present.Figure(f.Lost), Limit: 1, AtLeast: true}, // else nothing is shown
			present.Goal{Name: l.name + ": lost and not counted", Value: present.Figure(f.Unaccounted)})
		return
	}
	d.Goals = append(d.Goals,
		present.Goal{Name: l.name + ": millions a second", Value: f.Delivered / 1e6, Limit: present.Figure(l.goal / 1e6), AtLeast: true},
		present.Goal{Name: l.name + ": lost", Value: present.Figure(f.Lost)})
	if l.cpu > 0 {
		d.Goals = append(d.Goals, present.Goal{Name: l.name + ": share of a core", Value: f.CPU, Limit: present.Figure(l.cpu)})
	}
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Println()
	var table present.Table
	table.Row("events", "calls/s", "delivered/s", "lost", "not counted", "cores, controller and Analyzer", "empty uprobe/s")
	for _, f := range d.Figures {
		table.Row(f.Name, fmt.Sprintf("%.2f M", float64(f.Rate)/1e6), fmt.Sprintf("%.2f M", float64(f.Delivered)/1e6),
			strconv.FormatInt(f.Lost, 10), strconv.FormatInt(f.Unaccounted, 10), present.Number(float64(f.CPU)), most(f.Ceiling))
	}
	table.Print(os.Stdout)
	for _, m := range d.Missing {
		fmt.Println("not measured:", m)
	}
	d.Goals = append(d.Goals, present.Goal{Name: "loads that cannot be measured here", Value: present.Figure(len(d.Missing))})
}

func most(perSecond present.Figure) string {
	if perSecond == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f M", float64(perSecond)/1e6)
}
