// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"regexp"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// worthKeeping is the least gain that an undone change may not have had: that of tunlets which
// do not say what is worth keeping.
const worthKeeping = 1.05

// ofTrials are the reasons by which a trial undoes a change. Others are not about its use: it
// made room for a better one, was withdrawn, or was changed by hand.
var ofTrials = regexp.MustCompile(`^(measured loss|no gain|no plain gain|not proven|too few events|not measurable|regressed|the tunlet's verdict)`)

// wrong reports whether the program's counter contradicts the verdict.
func (v verdict) wrong() bool {
	switch v.Verdict {
	case report.VerdictKept:
		return v.True < 1
	case report.VerdictUndone:
		return v.True >= worthKeeping && ofTrials.MatchString(v.Reason)
	}
	return false
}

// stated reports whether there is an interval to look at, and whether the true gain lies in it.
func (v verdict) stated() (stated, within bool) {
	stated = !math.IsNaN(float64(v.Low)) && !math.IsNaN(float64(v.True))
	return stated, v.Low <= v.True && v.True <= v.High
}

// sum is what all verdicts on a program, or on all programs, come to.
type sum struct {
	kept, undone, other, wrong, untold, stated, within int
	gains, truths                                      []float64
}

func (s *sum) add(v verdict) {
	switch v.Verdict {
	case report.VerdictKept:
		s.kept++
	case report.VerdictUndone:
		s.undone++
	default:
		s.other++
		return
	}
	if v.wrong() {
		s.wrong++
	}
	if math.IsNaN(float64(v.True)) {
		s.untold++
	}
	if stated, within := v.stated(); stated {
		s.stated++
		s.gains, s.truths = append(s.gains, float64(v.Gain)), append(s.truths, float64(v.True))
		if within {
			s.within++
		}
	}
}

// Print shows what was said of each program, and each verdict that the counter contradicts.
func (d *document) Print() {
	var table present.Table
	table.Row("program", "runs", "kept", "undone", "other", "wrong", "untold", "stated", "true", "within")
	for _, p := range d.Programs {
		var s sum
		for _, v := range p.Verdicts {
			s.add(v)
		}
		table.Row(p.Name, fmt.Sprint(p.Runs), fmt.Sprint(s.kept), fmt.Sprint(s.undone), fmt.Sprint(s.other), fmt.Sprint(s.wrong), fmt.Sprint(s.untold),
			present.Times(measure.Median(s.gains)), present.Times(measure.Median(s.truths)), fmt.Sprintf("%d of %d", s.within, s.stated))
	}
	fmt.Println()
	table.Print(os.Stdout)
	fmt.Println()
	for _, p := range d.Programs {
		for _, v := range p.Verdicts {
			if stated, within := v.stated(); v.wrong() || stated && !within {
				fmt.Printf("%s, run %d: %s %s, stated %.3g [%.3g..%.3g], counted %.3g (%.1f s with, %.1f s without): %s\n",
					p.Name, v.Run, v.Tunlet, v.Verdict, v.Gain, v.Low, v.High, v.True, v.With, v.Without, v.Reason)
			}
		}
	}
	for _, p := range d.Programs {
		for _, text := range p.Failed {
			fmt.Printf("failed: %s, %s\n", p.Name, text)
		}
	}
	for _, text := range d.Missing {
		fmt.Println("left out:", text)
	}
}

func (d *document) goals() []present.Goal {
	var all sum
	silent, failed := 0, 0
	for _, p := range d.Programs {
		failed += len(p.Failed)
		before := all.kept + all.undone
		for _, v := range p.Verdicts {
			all.add(v)
		}
		if all.kept+all.undone == before {
			silent++
		}
	}
	return []present.Goal{
		{Name: "programs", Value: present.Figure(len(d.Programs)), Limit: 10, AtLeast: true},
		{Name: "programs of which nothing was kept or undone", Value: present.Figure(silent)},
		{Name: "runs that did not get through", Value: present.Figure(failed)},
		{Name: "verdicts that the program's counter contradicts", Value: present.Figure(all.wrong)},
		{Name: "verdicts on which the counter says nothing, share", Value: present.Figure(float64(all.untold) / float64(all.kept+all.undone)), Limit: 0.1},
		{Name: "true gain within the stated interval, share of verdicts", Value: present.Figure(float64(all.within) / float64(all.stated)), Limit: leastWithin(all.stated), AtLeast: true},
	}
}

// leastWithin is 90 %, less what so many verdicts leave to chance: two standard errors.
func leastWithin(verdicts int) present.Figure {
	return present.Figure(0.9 - 2*math.Sqrt(0.9*0.1/float64(verdicts)))
}
