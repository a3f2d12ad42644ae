// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// measure publishes a round of samples of process 7 of ac1, and aggregates of 50 ms up to
// then, by a clock of the node that is ahead of the session's by some time.
func (r *rig) measure(ahead time.Duration) {
	at := r.time().Add(ahead).UnixNano()
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
		UnixNano: at, Samples: []*attunev1.Sample{{Process: 7}},
	}}})
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: &attunev1.AggregateBatch{
		FromUnixNano: at - 50e6, ToUnixNano: at, Aggregates: []*attunev1.Aggregate{{Process: 7, Point: 1, Count: 1}},
	}}})
	r.report()
}

// TestClockOfNodeIsSet sets the clock of a node while a tunlet measures there. To the
// tunlet time goes on: what it is told of later is later, and not in the future.
func TestClockOfNodeIsSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, core.ModeTune)
			a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("p", "malloc")}})
			r.session.TunletReady(a)
			r.connect("ac1", 7)
			r.grow()
			r.settle("a")
			var want []int64
			for i := range 8 {
				r.tick()
				want = append(want, r.time().UnixNano())
				if i < 4 {
					r.measure(0)
				} else {
					r.measure(by)
				}
				r.settle("a")
			}
			var samples, ends, lengths []int64
			for _, e := range get(a, func() []*attunev1.HandleEventsRequest { return a.events }) {
				if e.GetSamples() != nil {
					samples = append(samples, e.GetSamples().GetUnixNano())
				}
				if len(e.GetAggregates()) > 0 {
					ends = append(ends, e.GetToUnixNano())
					lengths = append(lengths, e.GetToUnixNano()-e.GetFromUnixNano())
				}
			}
			if diff := cmp.Diff(want, samples); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, ends); diff != "" {
				t.Errorf("ends of aggregates (-want +got):\n%s", diff)
			}
			for _, length := range lengths {
				if length != 50e6 {
					t.Errorf("aggregates of %v, want 50 ms", time.Duration(length))
				}
			}
		})
	}
}

// TestNodeIsBehind has a node whose clock is behind by more than samples count for, from the
// first or since it was set back again and again. What is proposed there is tried all the same.
func TestNodeIsBehind(t *testing.T) {
	for name, behind := range map[string]func(i int) time.Duration{
		"from the first": func(int) time.Duration { return 3 * time.Second },
		"step by step":   func(i int) time.Duration { return time.Duration(i/60) * 600 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, core.ModeTune)
			a := newScripted(t, "a", nil)
			r.session.TunletReady(a)
			l := r.connect("ac1", 7)
			r.grow()
			for i := range 300 {
				r.tick()
				r.measure(-behind(i))
				r.settle("a")
				at := get(a, func() int64 { return a.events[len(a.events)-1].GetSamples().GetUnixNano() })
				r.react("a", &attunev1.Reaction{Objectives: []*attunev1.ObjectiveSample{{Value: 1, UnixNano: at}}})
			}
			r.react("a", &attunev1.Reaction{Proposals: []*attunev1.Proposal{{Id: "p", Changes: []*attunev1.Change{{
				Knob: "k", Process: 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
			}}}}})
			r.tick()
			if !slices.Contains(l.kinds(), "Apply") {
				t.Errorf("the change is not tried: refused %+v", r.report().Refused)
			}
		})
	}
}

// TestProcessOnANodeBehind has a process start before it is known how far its node's clock is
// behind, and end after that: its duration is not longer by it.
func TestProcessOnANodeBehind(t *testing.T) {
	const behind = 3 * time.Second
	r := newRig(t, core.ModeTune)
	for range 200 {
		r.tick()
	}
	r.connect("ac1")
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{
		ProcessStarted: &attunev1.Process{Handle: 7, SeenUnixNano: r.time().Add(-behind).UnixNano()},
	}})
	for range 200 {
		r.tick()
		r.measure(-behind)
	}
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{
		ProcessEnded: &attunev1.ProcessEnded{Process: 7, EndedUnixNano: r.time().Add(-behind).UnixNano()},
	}})
	p := r.report().Processes[0]
	if took := *p.EndedSeconds - p.StartedSeconds; took < 9.5 || took > 10.5 {
		t.Errorf("it took %v s from %v s on, want 10", took, p.StartedSeconds)
	}
}

// TestProcessAcrossASetClock sets the clock of a node back while a process runs: its start was
// told right, and stays.
func TestProcessAcrossASetClock(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	ahead := time.Duration(0)
	told := func() int64 { return r.time().Add(ahead).UnixNano() }
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{
		ProcessStarted: &attunev1.Process{Handle: 7, SeenUnixNano: told()},
	}})
	for i := range 200 {
		if i == 100 {
			ahead = -time.Hour
		}
		r.tick()
		r.measure(ahead)
	}
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{
		ProcessEnded: &attunev1.ProcessEnded{Process: 7, EndedUnixNano: told()},
	}})
	p := r.report().Processes[0]
	if took := *p.EndedSeconds - p.StartedSeconds; took < 9.5 || took > 10.5 {
		t.Errorf("it took %v s from %v s on, want 10", took, p.StartedSeconds)
	}
}

// TestShift checks that times keep their distances however late they come, but for those of
// a clock that is ahead, goes back or is behind.
func TestShift(t *testing.T) {
	const ms = int64(time.Millisecond)
	type told struct{ nanos, now, want int64 }
	for name, all := range map[string][]told{
		"late and at once":     {{100, 101, 100}, {150, 300, 150}, {200, 300, 200}},
		"behind":               {{100, 5000, 100}, {150, 5050, 150}, {2200, 7120, 7100}, {2250, 7150, 7150}},
		"a little behind":      {{100, 500, 100}, {150, 550, 150}, {3000, 3400, 3000}},
		"held up at once":      {{100, 100, 100}, {2200, 2200, 2200}, {2250, 4250, 2250}, {4250, 4251, 4250}},
		"held up":              {{100, 1500, 100}, {2000, 2000, 2000}, {2050, 4000, 2050}, {4050, 4050, 4050}},
		"set back a little":    {{100, 100, 100}, {1400, 2050, 1400}, {1500, 2150, 1500}, {3450, 4100, 4100}, {3500, 4160, 4150}},
		"ahead":                {{5100, 102, 102}, {5150, 160, 152}, {5200, 201, 201}},
		"in disorder":          {{1000, 1000, 1000}, {990, 1001, 990}, {1050, 1051, 1050}},
		"set back":             {{9000, 9001, 9000}, {1050, 9051, 9051}, {1100, 9110, 9101}},
		"set back and forward": {{9000, 9001, 9000}, {1050, 9051, 9051}, {9100, 9102, 9102}},
	} {
		t.Run(name, func(t *testing.T) {
			var s shift
			for _, one := range all {
				if got := s.apply(one.nanos*ms, one.now*ms); got != one.want*ms {
					t.Errorf("told %d ms at %d ms: got %d ms, want %d ms", one.nanos, one.now, got/ms, one.want)
				}
			}
		})
	}
}

// TestTimesOfObjectives has tunlets give times by the session's clock.
func TestTimesOfObjectives(t *testing.T) {
	now := time.Unix(1010, 0)
	c := &clock{start: time.Unix(1000, 0), wall: func() time.Time { return now }}
	for name, tt := range map[string]struct {
		at   time.Time
		want time.Duration
	}{
		"none":               {time.Unix(0, 0), 0},
		"a while ago":        {time.Unix(1007, 0), 7 * time.Second},
		"before the session": {time.Unix(900, 0), 0},
		"in the future":      {time.Unix(4610, 0), 10 * time.Second},
	} {
		if got := c.sinceStart(tt.at); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
