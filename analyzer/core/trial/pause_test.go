// SPDX-License-Identifier: Apache-2.0

package trial

import (
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
