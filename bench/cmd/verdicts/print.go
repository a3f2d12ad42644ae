// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// worthKeeping is the least gain that an undone change may not have had: that of tunlets which
// do not say what is worth keeping.
const worthKeeping = 1.05

// wrong reports whether the program's counter contradicts the verdict. A change that was found
// to gain something is undone for another reason, as for a better one.
func (v verdict) wrong() bool {
	switch v.Verdict {
	case report.VerdictKept:
		return v.True < 1
	case report.VerdictUndone:
		return v.Gain < worthKeeping && v.True >= worthKeeping
	}
	return false
}

// stated reports whether there is an interval to look at, and whether the true gain lies in it.
func (v verdict) stated() (stated, within bool) {
	return v.Low == v.Low && v.True == v.True, v.Low <= v.True && v.True <= v.High
}

// sum is what all verdicts on a program, or on all programs, come to.
type sum struct {
	kept, undone, other, wrong, stated, within int
	gains, truths                              []float64
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
	table.Row("program", "runs", "kept", "undone", "other", "wrong", "stated", "true", "within")
	for _, p := range d.Programs {
		var s sum
		for _, v := range p.Verdicts {
			s.add(v)
		}
		table.Row(p.Name, fmt.Sprint(p.Runs), fmt.Sprint(s.kept), fmt.Sprint(s.undone), fmt.Sprint(s.other), fmt.Sprint(s.wrong),
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
	for _, text := range d.Missing {
		fmt.Println("left out:", text)
	}
}

func (d *document) goals() []present.Goal {
	var all sum
	silent := 0
	for _, p := range d.Programs {
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
		{Name: "verdicts that the program's counter contradicts", Value: present.Figure(all.wrong)},
		{Name: "true gain within the stated interval, share of verdicts", Value: present.Figure(float64(all.within) / float64(all.stated)), Limit: 0.9, AtLeast: true},
	}
}
