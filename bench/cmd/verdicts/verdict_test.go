// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

var began = time.Unix(1000, 0)

// at is a time of the session, in seconds.
func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// entry is one of the proposal that the tests look at, which is in force or not.
func entry(seconds float64, kind string, inForce bool) report.Entry {
	e := report.Entry{Time: at(seconds), Kind: kind, Tunlet: "t", Proposal: "p", Changes: []report.EntryChange{{Outcome: "undone"}}}
	if inForce {
		e.Changes[0].Outcome = "applied"
	}
	return e
}

// inTurns is a trial of two turns that ends with the change in force.
var inTurns = []report.Entry{
	{Time: at(0), Kind: "session_started"},
	entry(1, "applying", false), entry(1.1, "applied", true),
	entry(2, "turning", true), entry(2.2, "turned", false), entry(3, "judged", false), entry(3, "turning", false), entry(3.1, "kept", true),
	{Time: at(9), Kind: "session_ended"},
}

func TestSides(t *testing.T) {
	foreign := func(seconds float64, kind string) report.Entry {
		return report.Entry{Time: at(seconds), Kind: kind, Tunlet: "o", Proposal: "p"}
	}
	for name, c := range map[string]struct {
		timeline []report.Entry
		want     []side
	}{
		"in turns": {inTurns, []side{
			{false, at(0), at(1)}, {true, at(1.1), at(2)}, {false, at(2.2), at(3)}, {true, at(3.1), at(9)},
		}},
		"until another one is tried": {
			append(inTurns[:8:8], foreign(5, "applying"), foreign(6, "kept"), report.Entry{Time: at(9), Kind: "session_ended"}),
			[]side{{false, at(0), at(1)}, {true, at(1.1), at(2)}, {false, at(2.2), at(3)}, {true, at(3.1), at(5)}},
		},
		"after another one was undone": {
			[]report.Entry{inTurns[0], foreign(0.5, "applying"), foreign(0.6, "undone"), inTurns[1], inTurns[2], inTurns[8]},
			[]side{{false, at(0), at(0.5)}, {false, at(0.6), at(1)}, {true, at(1.1), at(9)}},
		},
		"after another one was kept": {
			[]report.Entry{inTurns[0], foreign(0.5, "applying"), foreign(0.6, "kept"), inTurns[1], inTurns[2], entry(5, "undoing", true), entry(5.1, "undone", false), inTurns[8]},
			[]side{{false, at(0.6), at(1)}, {true, at(1.1), at(5)}, {false, at(5.1), at(9)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, sides(c.timeline, "t", "p"), cmp.AllowUnexported(side{})); diff != "" {
				t.Errorf("sides (-want +got):\n%s", diff)
			}
		})
	}
}

// A program that runs three times as fast with the change is seen to.
func TestVerdicts(t *testing.T) {
	var progress []measure.Reading
	count := 0.0
	for tenth := range 90 {
		seconds := float64(tenth) / 10
		progress = append(progress, measure.Reading{At: at(seconds), Count: count})
		if rate := 10.0; seconds >= 1.1 && seconds < 2 || seconds >= 3.1 {
			count += 3 * rate
		} else {
			count += rate
		}
	}
	gain, low, high, applied := 2.9, 2.5, 3.4, at(1.1)
	r := report.Report{Changes: []report.Change{
		{Tunlet: "t", Proposal: "p", Verdict: report.VerdictKept, AppliedAt: &applied, Objective: &report.Objective{Gain: &gain, GainLow: &low, GainHigh: &high}},
		{Tunlet: "t", Proposal: "p", Verdict: report.VerdictKept, AppliedAt: &applied},
		{Tunlet: "t", Proposal: "refused", Verdict: report.VerdictRefused},
	}}
	all := verdicts(1, r, inTurns, progress)
	if len(all) != 1 {
		t.Fatalf("got %d verdicts, want one for each change that was tried: %+v", len(all), all)
	}
	if v := all[0]; math.Abs(float64(v.True)-3) > 1e-9 || v.Gain != 2.9 || v.wrong() {
		t.Errorf("got %+v, want a true gain of 3", v)
	}
	if stated, within := all[0].stated(); !stated || !within {
		t.Errorf("stated %v, within %v; want 3 to be within 2.5 to 3.4", stated, within)
	}
}

func TestWrong(t *testing.T) {
	for name, c := range map[string]struct {
		v    verdict
		want bool
	}{
		"kept, faster":                       {verdict{Verdict: report.VerdictKept, True: 1.1}, false},
		"kept, slower":                       {verdict{Verdict: report.VerdictKept, True: 0.9}, true},
		"undone, slower":                     {verdict{Verdict: report.VerdictUndone, Gain: 0.9, True: 0.9}, false},
		"undone as slower, faster":           {verdict{Verdict: report.VerdictUndone, Gain: 0.9, True: 1.1}, true},
		"undone for a better one":            {verdict{Verdict: report.VerdictUndone, Gain: 2, True: 2}, false},
		"undone, hardly faster":              {verdict{Verdict: report.VerdictUndone, Gain: 1, True: 1.02}, false},
		"undone, nothing was counted":        {verdict{Verdict: report.VerdictUndone, Gain: 1, True: present.Figure(math.NaN())}, false},
		"unjudged, however much it was":      {verdict{Verdict: report.VerdictUnjudged, Gain: 1, True: 3}, false},
		"undone, nothing was stated, faster": {verdict{Verdict: report.VerdictUndone, Gain: present.Figure(math.NaN()), True: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.v.wrong(); got != c.want {
				t.Errorf("wrong: got %v, want %v", got, c.want)
			}
		})
	}
}
