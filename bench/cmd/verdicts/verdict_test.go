// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
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
			[]side{{false, at(0.6), at(1)}, {true, at(1.1), at(9)}},
		},
		"after another one was kept": {
			[]report.Entry{inTurns[0], foreign(0.5, "applying"), foreign(0.6, "kept"), inTurns[1], inTurns[2], entry(5, "undoing", true), entry(5.1, "undone", false), inTurns[8]},
			[]side{{false, at(0.6), at(1)}, {true, at(1.1), at(5)}, {false, at(5.1), at(9)}},
		},
		"while another one is tried": {
			[]report.Entry{inTurns[0], foreign(0.5, "applying"), inTurns[1], inTurns[2], foreign(2, "kept"), entry(5, "turning", true), entry(5.1, "turned", false), inTurns[8]},
			[]side{{false, at(5.1), at(9)}},
		},
		"until another one is compared again": {
			append(inTurns[:8:8], foreign(5, "turning"), foreign(6, "turned"), foreign(7, "kept"), inTurns[8]),
			[]side{{false, at(0), at(1)}, {true, at(1.1), at(2)}, {false, at(2.2), at(3)}, {true, at(3.1), at(5)}},
		},
		"proposed again": {
			append(inTurns[:8:8], entry(4, "undoing", true), entry(4.1, "undone", false), entry(5, "proposed", false), entry(6, "applying", false), entry(6.1, "applied", true), inTurns[8]),
			[]side{{false, at(5), at(6)}, {true, at(6.1), at(9)}},
		},
		"undone in a turn without it": {
			append(inTurns[:6:6], entry(3, "undone", false), report.Entry{Time: at(9), Kind: "session_ended"}),
			[]side{{false, at(0), at(1)}, {true, at(1.1), at(2)}, {false, at(2.2), at(3)}, {false, at(3), at(9)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, watch(c.timeline, "t", "p").sides, cmp.AllowUnexported(side{})); diff != "" {
				t.Errorf("sides (-want +got):\n%s", diff)
			}
		})
	}
}

// progressOf is what a program tells in each tenth of a second that runs three times as fast with
// the change.
func progressOf(sides []side) (all []measure.Reading) {
	count := 0.0
	for tenth := range 91 {
		all = append(all, measure.Reading{At: at(float64(tenth) / 10), Count: count})
		count++ // without it
		for _, s := range sides {
			begin := slices.MaxFunc([]time.Time{at(float64(tenth) / 10), s.from}, time.Time.Compare)
			end := slices.MinFunc([]time.Time{at(float64(tenth+1) / 10), s.to}, time.Time.Compare)
			if seconds := end.Sub(begin).Seconds(); s.on && seconds > 0 {
				count += 2 * seconds / 0.1
			}
		}
	}
	return all
}

func TestVerdicts(t *testing.T) {
	timeline := slices.Clone(inTurns)
	for i := range timeline[1:8] { // in the midst of readings
		timeline[1+i].Time = timeline[1+i].Time.Add(30 * time.Millisecond)
	}
	gain, low, high, applied := 2.9, 2.5, 3.4, at(1.1)
	objective := &report.Objective{Gain: &gain, GainLow: &low, GainHigh: &high}
	o := observed{timeline: timeline, progress: progressOf(watch(timeline, "t", "p").sides), report: report.Report{Changes: []report.Change{
		{Tunlet: "t", Proposal: "p", Verdict: report.VerdictKept},
		{Tunlet: "t", Proposal: "p", Verdict: report.VerdictKept, AppliedAt: &applied, Objective: objective},
		{Tunlet: "t", Proposal: "p", Verdict: report.VerdictKept, AppliedAt: &applied, Objective: objective},
		{Tunlet: "t", Proposal: "refused", Verdict: report.VerdictRefused},
	}}}
	all := o.verdicts(1)
	if len(all) != 1 {
		t.Fatalf("got %d verdicts, want one for each proposal that was tried: %+v", len(all), all)
	}
	if v := all[0]; math.Abs(float64(v.True)-3) > 1e-6 || v.Gain != 2.9 || v.wrong() {
		t.Errorf("got %+v, want a true gain of 3", v)
	}
	if stated, within := all[0].stated(); !stated || !within {
		t.Errorf("stated %v, within %v; want 3 to be within 2.5 to 3.4", stated, within)
	}
	// Half as fast without Attune, for as long as without the change.
	o.plain = []measure.Reading{{At: at(100), Count: 0}, {At: at(100).Add(time.Duration(all[0].Without * 1e9)), Count: 5 * all[0].Without}}
	if v := o.verdicts(1)[0]; math.Abs(float64(v.True)-4) > 0.01 {
		t.Errorf("beside a run without Attune: got %+v, want a true gain of 4", v)
	}
	// With another change in force, a run without Attune is no comparison.
	o.timeline = slices.Concat(timeline[:1], []report.Entry{
		{Time: at(0.1), Kind: "applying", Tunlet: "o", Proposal: "p"}, {Time: at(0.2), Kind: "kept", Tunlet: "o", Proposal: "p"},
	}, timeline[1:])
	if v := o.verdicts(1)[0]; math.Abs(float64(v.True)-3) > 1e-6 {
		t.Errorf("beside another change: got %+v, want a true gain of 3", v)
	}
}

func TestWrong(t *testing.T) {
	for name, c := range map[string]struct {
		v    verdict
		want bool
	}{
		"kept, faster":                       {verdict{Verdict: report.VerdictKept, True: 1.1}, false},
		"kept, slower":                       {verdict{Verdict: report.VerdictKept, True: 0.9}, true},
		"undone, slower":                     {verdict{Verdict: report.VerdictUndone, Gain: 0.9, True: 0.9, Reason: "measured loss: 0.9x"}, false},
		"undone as slower, faster":           {verdict{Verdict: report.VerdictUndone, Gain: 0.9, True: 1.1, Reason: "measured loss: 0.9x"}, true},
		"undone, withdrawn":                  {verdict{Verdict: report.VerdictUndone, Gain: 2, True: 2, Reason: "withdrawn by the tunlet: enough"}, false},
		"undone for a better one":            {verdict{Verdict: report.VerdictUndone, Gain: 2, True: 2, Reason: "replaced by workers-2"}, false},
		"undone as not proven, faster":       {verdict{Verdict: report.VerdictUndone, Gain: 1.4, True: 1.4, Reason: "not proven: 1.4x"}, true},
		"undone, hardly faster":              {verdict{Verdict: report.VerdictUndone, Gain: 1, True: 1.02, Reason: "no gain: 1x"}, false},
		"undone, nothing was counted":        {verdict{Verdict: report.VerdictUndone, Gain: 1, True: present.Figure(math.NaN())}, false},
		"unjudged, however much it was":      {verdict{Verdict: report.VerdictUnjudged, Gain: 1, True: 3}, false},
		"undone, nothing was stated, faster": {verdict{Verdict: report.VerdictUndone, Gain: present.Figure(math.NaN()), True: 2, Reason: "too few events to compare"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.v.wrong(); got != c.want {
				t.Errorf("wrong: got %v, want %v", got, c.want)
			}
		})
	}
}
