// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestPaceWhileJudging has a change under judgement for longer than a session
// hurries otherwise: samples taken less often would not compare.
func TestPaceWhileJudging(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1", 1)
	a := newScripted(t, "a", &attunev1.Reaction{
		Objectives: []*attunev1.ObjectiveSample{{Value: 1, UnixNano: r.time().UnixNano()}},
		Proposals: []*attunev1.Proposal{{Id: "p", Changes: []*attunev1.Change{{
			Knob: "k", Process: 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
		}}}},
	})
	r.session.TunletReady(a)
	r.settle("a")
	for !slices.Contains(l.kinds(), "Apply") {
		r.tick()
	}
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: &attunev1.ActionResult{
		RequestId: "r1", ChangeId: "c1", Outcome: attunev1.Outcome_OUTCOME_APPLIED,
	}}})
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{Done: &attunev1.RequestDone{RequestId: "r1"}}})
	for range 2 * hurryFor / (50 * time.Millisecond) {
		r.tick()
	}
	pace, err := View(context.Background(), r.session, func(time.Duration) time.Duration { return r.session.pace.period })
	if err != nil || pace != r.session.tickEvery {
		t.Errorf("pace %v, %v; want %v", pace, err, r.session.tickEvery)
	}
}

// TestPaceWithoutEnd has something happen every second, for minutes: after a while
// samples are taken slowly nevertheless, and every tick for a twentieth of the time.
func TestPaceWithoutEnd(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 1)
	r.session.TunletReady(newScripted(t, "a", nil))
	r.settle("a")
	fast := func(during time.Duration) (part float64) {
		var ticks, all int
		for range during / (50 * time.Millisecond) {
			if all++; all%20 == 0 {
				r.session.post(r.session.pace.hurry)
			}
			r.tick()
			pace, err := View(context.Background(), r.session, func(time.Duration) time.Duration { return r.session.pace.period })
			if err != nil {
				t.Fatal(err)
			}
			if pace == r.session.tickEvery {
				ticks++
			}
		}
		return float64(ticks) / float64(all)
	}
	if part := fast(2 * time.Second); part < 0.9 {
		t.Errorf("at first, every tick is sampled in %.2f of the time", part)
	}
	fast(10 * time.Second)
	if part := fast(2 * time.Minute); part < 0.5*creditShare || part > 1.5*creditShare {
		t.Errorf("every tick is sampled in %.3f of the time, want about %.2f", part, creditShare)
	}
}

// TestPaceOfSleepers has nobody look at a program but tunlets that sleep: what wakes
// one needs two samples, and the longer nothing has happened, the less often there is
// one.
func TestPaceOfSleepers(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 1)
	r.session.TunletAsleep(&attunev1.DescribeResponse{Name: "a", Wake: []*attunev1.Wake{{Levels: []*attunev1.Level{{Series: 5, AtLeast: 1}}}}}, func() {})
	pace := func(after time.Duration) time.Duration {
		for range after / (50 * time.Millisecond) {
			r.tick()
		}
		pace, err := View(context.Background(), r.session, func(time.Duration) time.Duration { return r.session.pace.period })
		if err != nil {
			t.Fatal(err)
		}
		return pace
	}
	const tick = 50 * time.Millisecond
	for _, tt := range []struct{ after, want time.Duration }{
		{tick, glance * tick}, {2 * hurryFor, restPeriod}, {12 * time.Second, 2 * restPeriod}, {time.Minute, longestRest},
	} {
		if got := pace(tt.after); got != tt.want {
			t.Errorf("%v later the pace is %v, want %v", tt.after, got, tt.want)
		}
	}
	r.session.TunletReady(newScripted(t, "a", nil))
	r.settle("a")
	if got := pace(tick); got != tick {
		t.Errorf("with a tunlet that runs the pace is %v, want %v", got, tick)
	}
}

// TestPaceOfWhatIsExpected: a process that has what a tunlet sleeps for is looked at
// at every tick at first, unless that must last for longer than two glances.
func TestPaceOfWhatIsExpected(t *testing.T) {
	const tick = 50 * time.Millisecond
	for _, tt := range []struct {
		name, object string
		lasting      time.Duration
		want         time.Duration
	}{
		{"with the library", "/lib/libmpi.so.40", 0, tick},
		{"with the library, for a while", "/lib/libmpi.so.40", 2 * glance * tick, glance * tick},
		{"without", "/lib/libc.so.6", 0, glance * tick},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, core.ModeTune)
			r.connect("ac1", 1)
			r.session.TunletAsleep(&attunev1.DescribeResponse{Name: "a", Wake: []*attunev1.Wake{
				{Object: "libmpi.so*", Levels: []*attunev1.Level{{Series: 5, AtLeast: 1}}, LastingNanos: int64(tt.lasting)},
			}}, func() {})
			if _, err := View(context.Background(), r.session, func(time.Duration) bool {
				r.session.sleepers.watch.Process(1, []string{tt.object})
				return true
			}); err != nil {
				t.Fatal(err)
			}
			r.tick()
			pace, err := View(context.Background(), r.session, func(time.Duration) time.Duration { return r.session.pace.period })
			if err != nil || pace != tt.want {
				t.Errorf("pace %v, %v, want %v", pace, err, tt.want)
			}
		})
	}
}
