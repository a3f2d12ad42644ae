// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/testing/lockedtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// measure has the owner's objective be one value while nothing is changed, and another one
// while something is, until the test ends.
func measure(t *testing.T, a *Analyzer, c *controller, without, with float64) {
	t.Helper()
	end := make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
			value := without
			c.mu.Lock()
			if len(c.changed) > 0 {
				value = with
			}
			c.mu.Unlock()
			a.Measured(value+float64(i%3), time.Now())
		}
	})
	t.Cleanup(func() { close(end); measuring.Wait() })
}

// The tunlet's objective says the contrary: the owner's decides. The report says so, and
// the one that is made from the recording, too.
func TestOwnersObjectiveDecides(t *testing.T) {
	for _, tt := range []struct {
		name, state   string
		app           app
		without, with float64
	}{
		{"worse", report.VerdictUndone, app{slow: 100, fast: 5000}, 100, 20},
		{"better", report.VerdictKept, app{slow: 100, fast: 20}, 20, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec, err := objective.Parse("requests=output:^request")
			if err != nil {
				t.Fatal(err)
			}
			recorded := new(lockedtext.Text)
			a, socket := run(t, Config{
				Mode: "tune", TunletDirs: []string{testTunlet.Dir(t, "good")}, Objective: &spec, Record: recorded, tick: 20 * time.Millisecond,
			})
			c := dial(t, socket, "ac1")
			measure(t, a, c, tt.without, tt.with)
			c.start(1, tt.app)
			s := until(t, a, tt.state, state(tt.state))
			if len(s.Objectives) == 0 || s.Objectives[0].Scope != "requests" {
				t.Errorf("the live view shows %+v", s.Objectives)
			}
			r := finish(t, a)
			if len(r.Changes) != 1 || r.Changes[0].Verdict != tt.state || r.Changes[0].Prediction != "" {
				t.Fatalf("changes %+v", r.Changes)
			}
			if o := r.Changes[0].Objective; o == nil || !o.Own || o.Name != "requests" || o.Unit != "1/s" || (*o.Gain > 1) != (tt.with > tt.without) {
				t.Errorf("objective %+v", o)
			}
			if o := r.Objective; o == nil || o.Name != "requests" || o.Values < 6 || *o.Mean < 20 || *o.Mean > 102 {
				t.Errorf("of the owner's objective: %+v", o)
			}
			checkSchema(t, r)
			checkRecorded(t, recorded, r)
		})
	}
}

// Hits are added up over processes. What nobody counted is not known.
func TestHitRate(t *testing.T) {
	var got []float64
	h := &hitRate{whole: whole[uint64]{steady: true, lasting: time.Second / 2, measured: func(value float64, end time.Time) { got = append(got, value, float64(end.UnixNano())) }}}
	ask := func(name string, point uint32, over bool) {
		h.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Asked{
			Asked: &attunev1.RecordedAsk{Asker: name, Point: point, Over: over},
		}})
	}
	second := int64(time.Second)
	count := func(from, to int64, all ...*attunev1.Aggregate) {
		h.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Aggregates{
			Aggregates: &attunev1.AggregateBatch{FromUnixNano: from * second, ToUnixNano: to * second, Aggregates: all},
		}})
	}
	ask(report.OwnerName, 3, false)
	ask(report.ObjectiveAsker, 4, false)
	count(0, 1, &attunev1.Aggregate{Point: 4, Process: 1}) // the work has not begun
	count(1, 2, &attunev1.Aggregate{Point: 3, Process: 1, Count: 9}, &attunev1.Aggregate{Point: 4, Process: 1, Count: 10}, &attunev1.Aggregate{Point: 4, Process: 2, Count: 20})
	count(2, 3, &attunev1.Aggregate{Point: 3, Process: 1, Count: 9}) // the point is off
	count(3, 5, &attunev1.Aggregate{Point: 4, Process: 1, Count: 10})
	count(5, 6, &attunev1.Aggregate{Point: 4, Process: 1})
	want := []float64{30, 2e9, 5, 5e9, 0, 6e9}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// hitsOf returns what becomes of frames in the values of a point, "value@milliseconds" each, and
// what is said.
func hitsOf(frames ...*attunev1.RecordingFrame) (values, said []string) {
	h := newHitRate(
		func(value float64, end time.Time) {
			values = append(values, fmt.Sprintf("%v@%d", value, end.UnixMilli()))
		},
		func(text string) { said = append(said, text) },
	)
	h.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Asked{
		Asked: &attunev1.RecordedAsk{Asker: report.ObjectiveAsker, Point: 4},
	}})
	for _, f := range frames {
		h.Take(f)
	}
	return values, said
}

// counted are hits of an interval, in milliseconds.
func counted(from, to time.Duration, hits map[uint64]uint64) *attunev1.RecordingFrame {
	b := &attunev1.AggregateBatch{FromUnixNano: int64(from * time.Millisecond), ToUnixNano: int64(to * time.Millisecond)}
	for process, count := range hits {
		b.Aggregates = append(b.Aggregates, &attunev1.Aggregate{Point: 4, Process: process, Count: count})
	}
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Aggregates{Aggregates: b}}
}

func becomes(process uint64, state attunev1.PointState) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointStatus{
		PointStatus: &attunev1.PointStatus{Point: 4, Process: process, State: state},
	}}
}

func gone(process uint64) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{
		ProcessGone: &attunev1.RecordedProcessEnd{Ended: &attunev1.ProcessEnded{Process: process}},
	}}
}

// What a process did before its end counts once, for as long as it ran.
func TestHitsOfTheEnded(t *testing.T) {
	got, _ := hitsOf(
		counted(0, 1000, map[uint64]uint64{1: 10, 2: 10, 3: 10}),
		counted(1000, 1500, map[uint64]uint64{1: 5}), gone(1), gone(3),
		counted(1000, 2000, map[uint64]uint64{2: 10}),
		counted(2000, 3000, map[uint64]uint64{2: 10}),
	)
	if diff := cmp.Diff([]string{"30@1000", "15@2000", "10@3000"}, got); diff != "" {
		t.Error(diff)
	}
}

// While the budget leaves nothing of the point in a process nothing is known of the whole, and people
// are told why.
func TestHitsOfAPointThatIsOff(t *testing.T) {
	both, one := map[uint64]uint64{1: 10, 2: 10}, map[uint64]uint64{2: 10}
	off, placed := attunev1.PointState_POINT_STATE_OFF, attunev1.PointState_POINT_STATE_PLACED
	got, said := hitsOf(
		becomes(1, placed), counted(0, 1000, both), becomes(1, off),
		counted(1000, 2000, one), counted(2000, 3000, one), counted(5000, 6000, one), becomes(1, placed),
		counted(6000, 7000, both), counted(7000, 8000, both), becomes(1, off),
		counted(8000, 9000, one), gone(1), counted(9000, 10000, one),
	)
	if diff := cmp.Diff([]string{"20@1000", "20@8000", "10@10000"}, got); diff != "" {
		t.Error(diff)
	}
	if len(said) != 1 {
		t.Errorf("said %q", said)
	}
}

// Of an interval that came apart both parts count.
func TestHitsThatCameApart(t *testing.T) {
	got, _ := hitsOf(
		counted(0, 1000, map[uint64]uint64{1: 10, 2: 10}),
		counted(1000, 1500, map[uint64]uint64{1: 10}),
		counted(1000, 2000, map[uint64]uint64{1: 10, 2: 10}),
	)
	if diff := cmp.Diff([]string{"20@1000", "30@1500", "30@2000"}, got); diff != "" {
		t.Error(diff)
	}
}
