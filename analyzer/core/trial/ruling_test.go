// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"testing"
	"time"
)

// A trial takes as much longer as samples are farther between, and says whose they were.
func TestPace(t *testing.T) {
	usual, slow := Objective{Pace: 0.5}, Objective{Pace: 4, Name: "requests"}
	if usual.Timeout() != judgeTimeout || slow.Timeout() != 4*judgeTimeout || slow.BaselineWait() != 4*baselineWait {
		t.Errorf("%v, %v, %v", usual.Timeout(), slow.Timeout(), slow.BaselineWait())
	}
	h := &History{}
	for i, length := range []time.Duration{9, 1, 2, 2, 2} {
		h.Add(time.Duration(i)*10*time.Second+length*time.Second, 1)
	}
	if got := h.Distance(); got != 10*time.Second {
		t.Errorf("samples are %v apart, want 10s", got)
	}
	groups := &History{}
	for i := range 12 {
		groups.Add(time.Duration(i/3)*10*time.Second+time.Duration(i%3)*time.Second, 1)
	}
	if got := groups.Distance(); got != 32*time.Second/11 {
		t.Errorf("samples in groups of three in 10s are %v apart", got)
	}
	if one, two := h.distanceAfter(42*time.Second-1), h.distanceAfter(32*time.Second-1); one != 0 || two != 10*time.Second {
		t.Errorf("one sample is said to be %v after the one before it, two %v; want 0 and 10s", one, two)
	}
	slow.History = h
	trial := &Trial{}
	trial.Begin(slow, 0, 0, 0)
	trial.from = time.Hour
	if r := trial.Look(slow, 2*time.Hour, true); r.Do != UndoIt && r.Do != DropIt {
		t.Errorf("ruling %+v without a sample", r)
	}
	if got, want := slow.tooFew(2), `not measurable: only 2 samples of your objective "requests" in 40s`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
