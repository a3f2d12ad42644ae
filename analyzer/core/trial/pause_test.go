// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// addSamples adds the values as samples of 50 ms from a time on, and returns when they end.
func addSamples(h *History, from time.Duration, values ...float64) time.Duration {
	for _, value := range values {
		from += 50 * time.Millisecond
		h.Add(from, value)
	}
	return from
}

// A program that stood still for a third of a second before the change is compared all the
// same: where there are no turns, the baseline stays as it is.
func TestPauseBeforeTheChange(t *testing.T) {
	for name, c := range map[string]struct {
		with float64
		want Action
	}{"much faster": {95, AskToKeep}, "much slower": {0.2, UndoIt}} {
		t.Run(name, func(t *testing.T) {
			h := &History{}
			baseline := make([]float64, 70)
			for i := range baseline {
				if i < 12 || i > 17 {
					baseline[i] = 1
				}
			}
			now := addSamples(h, 0, baseline...)
			o := Objective{History: h, MinGain: 0.05, Promised: 50, Apart: true}
			var tr Trial
			tr.Prepare(o, now, 0)
			tr.Begin(o, now, now, now)
			now = addSamples(h, now+SettleTime, c.with, c.with, c.with, c.with, c.with, c.with, c.with)
			if r := tr.Look(o, now, false); r.Do != c.want {
				t.Errorf("got %v (%s), want %v: %s", r.Do, r.Reason, c.want, tr.Judgement.Text())
			}
		})
	}
}

// One value far off in one of many pairs says nothing against what all of them show.
func TestOutlierInOnePair(t *testing.T) {
	tr := &turns{within: []float64{1.01, 1.02, 1.01}}
	for i := range leastPairs {
		p := pair{gain: 1.25, sums: stretches{sum{10 * 0.3, 0.3, 6, 6}, sum{8 * 0.3, 0.3, 6, 6}}}
		if i == 3 {
			p.sums.second.amount += 300 * 0.05
		}
		tr.compared = append(tr.compared, p)
	}
	if f := tr.rank(tr.compared, 0.05, true); f.low <= 1 {
		t.Errorf("interval %v to %v of a gain of %v, want it above 1", f.low, f.high, f.gain)
	}
}

// A change that could be taken back only when the time for the trial was over has been compared
// once, in one direction: that says nothing, and no figure is told.
func TestOneTurnAfterTheTime(t *testing.T) {
	for name, c := range map[string]struct {
		kept bool
		want Action
	}{"first trial": {false, DropIt}, "kept before": {true, KeepIt}} {
		t.Run(name, func(t *testing.T) {
			r := begun(0, false)
			r.goOn(20, 200)
			r.turns = newTurns(r.now, nil, r.objective.since(r.from), c.kept, nil, r.objective)
			r.ChangeSides()
			r.goOn(int(turnsTimeout/(50*time.Millisecond)), 200)
			r.Resume(r.now)
			ruling, _ := r.lookOn(historySize, 100)
			if ruling.Do != c.want || r.Judgement != nil {
				t.Errorf("%+v by %+v, want %v by nothing", ruling, r.Judgement, c.want)
			}
		})
	}
}

// A kept change is not judged again for a window over which the application paused, wherever in
// it and for however much of it, but for one in which it was slow throughout.
func TestPauseInTheWatch(t *testing.T) {
	const window = int(watchWindow / (50 * time.Millisecond))
	paused := func(from, to int) func(int) float64 {
		return func(n int) float64 {
			if from <= n && n < to {
				return 0
			}
			return 1.2
		}
	}
	cases := map[string]struct {
		speed func(n int) float64 // 1 before
		want  Action
	}{
		"slow throughout": {func(n int) float64 {
			if n%5 > 0 {
				return 0
			}
			return 1.2
		}, ChangeSides},
		"two pauses": {func(n int) float64 {
			if n < window && n%20 >= 4 {
				return 0
			}
			return 1.2
		}, LookOn},
	}
	for from := 0; from < window; from += 4 {
		for to := from + 4; to <= 2*window; to += 4 {
			cases[fmt.Sprintf("a pause from %d to %d", from, to)] = struct {
				speed func(n int) float64
				want  Action
			}{paused(from, to), LookOn}
		}
	}
	for name, c := range cases {
		for _, baseline := range []int{10, 40, historySize} {
			h := &History{}
			now := addSamples(h, 0, slices.Repeat([]float64{1}, baseline+1)...)
			o := Objective{History: h, MinGain: 0.05}
			tr := Trial{before: slices.Clone(o.before(0, now, baseline))}
			tr.WatchFrom(now)
			got := LookOn
			for n := 0; n < 2*window && got == LookOn; n++ {
				now = addSamples(h, now, c.speed(n))
				got = tr.Watch(o, now).Do
			}
			if got != c.want {
				t.Errorf("%s, %d samples before: got %v, want %v", name, baseline, got, c.want)
			}
		}
	}
}
