// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// run is an application under trial, sampled every 50 ms.
type run struct {
	Trial
	objective Objective
	now       time.Duration
}

// begun has run for a second at a speed of 100 when a change takes effect.
func begun(promised float64, apart bool) *run {
	r := &run{objective: Objective{History: &History{}, MinGain: 0.05, Promised: promised, Apart: apart}}
	r.goOn(20, 100)
	r.Prepare(r.objective, r.now, 0)
	r.Begin(r.objective, r.now, r.now, r.now)
	return r
}

// goOn runs for some samples at about that speed.
func (r *run) goOn(samples int, speed float64) {
	for range samples {
		r.now += 50 * time.Millisecond
		r.objective.Add(r.now, speed*(1+0.01*float64(r.now/(50*time.Millisecond)%3)))
	}
}

// lookOn runs at that speed until there is a ruling, and says after how many samples.
func (r *run) lookOn(most int, speed float64) (Ruling, int) {
	for n := range most {
		r.goOn(1, speed)
		if ruling := r.Look(r.objective, r.now, false); ruling.Do != LookOn {
			return ruling, n + 1
		}
	}
	return r.Look(r.objective, r.now, true), most
}

// takeTurns changes sides until there is a ruling; off and on are the speeds of both.
func (r *run) takeTurns(ruling Ruling, off, on float64) Ruling {
	for range 40 {
		if ruling.Do != ChangeSides {
			break
		}
		speed := off
		if inForce, _ := r.ChangeSides(); inForce {
			speed = on
		}
		r.Resume(r.now)
		ruling, _ = r.lookOn(100, speed)
	}
	return ruling
}

// What fewer processes achieve is compared with what more did in turns, or where there are none not at all.
func TestFewerProcesses(t *testing.T) {
	for apart, want := range map[bool]Action{false: ChangeSides, true: DropIt} {
		for _, speed := range []float64{20, 1200} {
			r := begun(4, apart)
			r.objective.Fewer = true
			if got, n := r.lookOn(40, speed); got.Do != want || r.Watched(r.objective) == apart {
				t.Errorf("apart %v, speed %v: %+v after %d samples, watched over later: %v", apart, speed, got, n, r.Watched(r.objective))
			}
		}
	}
}

// Before and after decide what is plain; all else is left to turns, if there may be any.
func TestBeforeAndAfter(t *testing.T) {
	tests := []struct {
		name     string
		promised float64
		apart    bool
		samples  int // most
		speed    float64
		want     Action
		reason   string
	}{
		{"a plain gain, as promised", 4, false, 40, 400, AskToKeep, ""},
		{"a plain gain, not promised", 0, false, 40, 400, ChangeSides, ""},
		{"a modest gain", 1.2, false, 40, 120, ChangeSides, ""},
		{"a modest loss", 4, false, 40, 80, ChangeSides, ""},
		{"a plain loss", 4, false, 40, 20, UndoIt, "measured loss"},
		{"hardly a sample", 4, false, 3, 400, DropIt, "not measurable"},
		{"apart: an overwhelming gain", 4, true, 40, 1200, AskToKeep, ""},
		{"apart: no progress at all", 4, true, 40, 0, UndoIt, "measured loss"},
		{"apart: a plain gain", 4, true, 40, 400, DropIt, "no plain gain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := begun(tt.promised, tt.apart)
			got, n := r.lookOn(tt.samples, tt.speed)
			if got.Do != tt.want || !strings.HasPrefix(got.Reason, tt.reason) {
				t.Errorf("%+v after %d samples, want %v: %s", got, n, tt.want, tt.reason)
			}
			if r.Judgement == nil || r.InTurns() != (tt.want == ChangeSides) {
				t.Errorf("judged: %v, in turns: %v", r.Judgement != nil, r.InTurns())
			}
		})
	}
}

// A change is kept in the side in which it is in force only, and one that was kept
// stays judged as it was, however often it is compared again.
func TestTurnsUntilKept(t *testing.T) {
	r := begun(2, false)
	ruling, _ := r.lookOn(40, 200)
	if ruling = r.takeTurns(ruling, 100, 200); ruling.Do != AskToKeep {
		t.Fatalf("%+v, want to keep it", ruling)
	}
	ruling = r.Resolve(attunev1.Verdict_VERDICT_KEEP, attunev1.Verdict_VERDICT_UNSPECIFIED, "")
	if r.Prove(ruling.Reason) {
		if on, _ := r.ChangeSides(); !on || r.Resume(r.now) != ruling.Reason {
			t.Error("the verdict is lost while the change is made again")
		}
	}
	kept := r.Judgement
	if again, _ := r.Keep(r.now); again || r.InTurns() || !r.Watched(r.objective) {
		t.Errorf("kept before: %v, in turns: %v, watched: %v", again, r.InTurns(), r.Watched(r.objective))
	}

	r.goOn(50, 60)
	if ruling = r.Watch(r.objective, r.now); ruling.Do != ChangeSides || !r.IsRetrial() {
		t.Fatalf("%+v when it has become worse", ruling)
	}
	if ruling = r.takeTurns(ruling, 60, 60); ruling.Do != KeepIt || r.Judgement == kept {
		t.Fatalf("%+v when it is no worse than without it", ruling)
	}
	if r.Prove(ruling.Reason) {
		r.ChangeSides()
	}
	if again, judged := r.Keep(r.now); !again || judged != kept {
		t.Errorf("kept before: %v, by %v, want %v", again, judged, kept)
	}
	r.goOn(50, 30)
	if ruling = r.Watch(r.objective, r.now); ruling.Do != LookOn {
		t.Errorf("%+v at once after it was compared again", ruling)
	}
}

// TestLullsTakeNoTime: a long turn in which the application paused has its whole time again
// after that, but no more than there is for the trial.
func TestLullsTakeNoTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		speed  func(sample int) float64 // of one long turn without the change
		kept   bool
		want   Action
		after  time.Duration // of the turn, at least
		reason string
	}{
		{"a pause", func(n int) float64 {
			if n >= 60 && n < 140 {
				return 0
			}
			return 100
		}, false, AskToKeep, judgeTimeout, ""},
		{"no end of it", func(int) float64 { return 0 }, false, DropIt, turnsTimeout - judgeTimeout, "the objective showed no progress"},
		{"no end of it, after it was kept", func(int) float64 { return 0 }, true, KeepIt, turnsTimeout - judgeTimeout, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := begun(0, false)
			r.goOn(20, 200)
			r.turns = newTurns(r.now, r.before, r.objective.since(r.from), false, nil, r.objective)
			r.turns.kept, r.turns.half = tt.kept, historySize/2
			r.ChangeSides()
			r.Resume(r.now)
			began, ruling := r.now, Ruling{}
			for n := 0; ruling.Do == LookOn; n++ {
				r.goOn(1, tt.speed(n))
				ruling = r.Look(r.objective, r.now, r.now >= began+r.objective.Timeout())
			}
			if ruling.Do != tt.want || !strings.Contains(ruling.Reason, tt.reason) || r.now-began < tt.after || r.now-began > turnsTimeout+time.Second {
				t.Errorf("after %v: %+v", r.now-began, ruling)
			}
		})
	}
}
