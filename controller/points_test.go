// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func (b *bench) sampleEvery(t *testing.T, period time.Duration) {
	t.Helper()
	b.want.PeriodNanos = int64(period)
	b.ask(t, b.wanting())
}

// wanting asks for all that the analyzer wants by now.
func (b *bench) wanting() *attunev1.ManageResponse {
	return &attunev1.ManageResponse{RequestId: "want", Request: &attunev1.ManageResponse_Want{Want: proto.CloneOf(&b.want)}}
}

// adding asks for one point more.
func (b *bench) adding(index uint32, spec *attunev1.MeasurePoint) *attunev1.ManageResponse {
	b.want.Points = append(b.want.Points, &attunev1.PointWant{Index: index, Point: spec})
	return b.wanting()
}

// removing asks for points no more.
func (b *bench) removing(indexes ...uint32) *attunev1.ManageResponse {
	b.want.Points = slices.DeleteFunc(b.want.Points, func(p *attunev1.PointWant) bool { return slices.Contains(indexes, p.GetIndex()) })
	return b.wanting()
}

func (b *bench) removePoint(t *testing.T, index uint32) {
	t.Helper()
	b.ask(t, b.removing(index))
}

func (b *bench) addPoint(t *testing.T, index uint32, spec *attunev1.MeasurePoint) {
	t.Helper()
	b.early, b.added = nil, index // those of the point before are old
	b.ask(t, b.adding(index, spec))
	b.added = 0
}

// placed waits for the point's status.
func (b *bench) placed(t *testing.T, index uint32) *attunev1.PointStatus {
	t.Helper()
	return b.placedWhile(t, index, func() {})
}

// placedWhile does something again and again, which brings a program to its
// safe points, until the point's status comes.
func (b *bench) placedWhile(t *testing.T, index uint32, again func()) *attunev1.PointStatus {
	t.Helper()
	for {
		if s := b.anyPlacedWhile(t, again); s.GetPoint() == index {
			return s
		}
	}
}

// counts adds up what a point counted until it is at least want.
func (b *bench) counts(t *testing.T, index uint32, want uint64) (sum uint64) {
	t.Helper()
	event(t, b, "enough counts", func(m *attunev1.PublishRequest) (bool, bool) {
		for _, a := range m.GetAggregates().GetAggregates() {
			if a.GetPoint() == index {
				sum += a.GetCount()
			}
		}
		return true, sum >= want
	})
	return sum
}

func call(symbol string, dynamic bool) *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{Id: symbol, Target: &attunev1.MeasurePoint_Function{
		Function: &attunev1.FunctionTarget{Symbols: []string{symbol}, DynamicCallsOnly: dynamic},
	}}
}

// A point asked for before the program starts is in its GOT before main; one
// asked for later is written by DMLib at a safe point. Each counts every call.
func TestDynamicCalls(t *testing.T) {
	tests := []struct {
		name string
		held bool
		flag string
	}{
		{"before main", true, "-Wl,-z,lazy"},
		{"before main, read-only GOT", true, "-Wl,-z,relro,-z,now"},
		{"while it runs", false, "-Wl,-z,lazy"},
		{"while it runs, read-only GOT", false, "-Wl,-z,relro,-z,now"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			program := targets.Build(t, "testdata/calls.c", test.flag)
			b := start(t)
			b.sampleEvery(t, 20*time.Millisecond)
			if test.held {
				b.addPoint(t, 3, call("getppid", true))
			}
			target := targets.Start(t, program, b.controller.Environment()...)
			if !test.held {
				b.withDMLib(t, target.PID)
				b.addPoint(t, 3, call("getppid", true))
			}
			status := b.placedWhile(t, 3, func() { target.Ask(t, "0") })
			if status.GetState() != attunev1.PointState_POINT_STATE_PLACED || status.GetMechanism() != "got" {
				t.Fatalf("point: %v", status)
			}
			target.Ask(t, "1000")
			if got := b.counts(t, 3, 1000); got != 1000 {
				t.Errorf("counted %d calls of 1000", got)
			}
			b.stop(t)
			target.Ask(t, "10") // the GOT leads somewhere sensible
			target.EndWell(t)
		})
	}
}

// Points that are placed together find the same objects, each all of them.
func TestDynamicCallsTogether(t *testing.T) {
	b := start(t)
	for i, symbol := range []string{"getppid", "strtol", "puts"} {
		b.addPoint(t, uint32(3+i), call(symbol, true))
	}
	target := targets.Start(t, targets.Build(t, "testdata/calls.c"), b.controller.Environment()...)
	for range 3 {
		s := b.anyPlacedWhile(t, func() { target.Ask(t, "0") })
		if s.GetMechanism() != "got" || s.GetReason() != "" {
			t.Errorf("point: %v", s)
		}
	}
	b.stop(t)
	target.EndWell(t)
}

func TestPointThatCannotBePlaced(t *testing.T) {
	program := targets.Build(t, "testdata/calls.c")
	b := start(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	b.addPoint(t, 4, &attunev1.MeasurePoint{Id: "x", Target: &attunev1.MeasurePoint_Hook{Hook: "nothing"}})
	if s := b.placed(t, 4); s.GetState() != attunev1.PointState_POINT_STATE_REFUSED || s.GetReason() == "" {
		t.Errorf("unknown hook: %v", s)
	}
	exit := call("own_work", false)
	exit.Place = attunev1.Place_PLACE_EXIT
	exit.Captures = []*attunev1.Capture{{Name: "wanted", Source: &attunev1.Capture_Parameter{}}} // only the kernel has it
	b.addPoint(t, 5, exit)
	if s := b.placed(t, 5); s.GetState() != attunev1.PointState_POINT_STATE_REFUSED || s.GetReason() == "" {
		t.Errorf("uprobe without BPF: %v", s)
	}
	b.stop(t)
}

// A child inherits its parent's GOT slots and stubs: what the parent's led to
// must not be bound to something else there.
func TestForkedChildKeepsItsStubs(t *testing.T) {
	program := targets.Build(t, "testdata/forks.c")
	b := start(t)
	b.sampleEvery(t, 20*time.Millisecond)
	b.addPoint(t, 3, call("getppid", true))
	target := targets.Start(t, program, b.controller.Environment()...)
	again := func() { target.Ask(t, "1") }
	b.placedWhile(t, 3, again)
	b.addPoint(t, 4, call("getsid", true))
	b.placedWhile(t, 4, again)
	// The program waits for input, so the slot of getppid cannot be given back
	// and is inherited; the child is asked for getsid alone.
	b.removePoint(t, 3)
	if s := b.placed(t, 3); s.GetState() != attunev1.PointState_POINT_STATE_REMOVED {
		t.Fatalf("status %v", s)
	}
	if got := target.Ask(t, "fork"); got != "0 wrong" {
		t.Fatalf("fork: %s", got)
	}
	b.placedWhile(t, 4, again)
	if got := target.Ask(t, "1000"); got != "0 wrong" {
		t.Errorf("in the child: %s", got)
	}
	if counted := b.counts(t, 4, 1000); counted < 1000 {
		t.Errorf("counted %d calls of getsid", counted)
	}
	b.stop(t)
	target.EndWell(t)
}

// Two points with different settings have one hook, each by its own: one that comes
// later, and one that stays when the first ends.
func TestPointsShareAHook(t *testing.T) {
	b := start(t)
	b.sampleEvery(t, 20*time.Millisecond)
	all := &attunev1.MeasurePoint{Id: "all", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}}
	small := &attunev1.MeasurePoint{Id: "small", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}, MinValue: 100, MaxValue: 100}
	target := targets.Start(t, targets.Build(t, "testdata/calls.c"), b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	for i, spec := range []*attunev1.MeasurePoint{all, small} {
		index := uint32(3 + i)
		b.addPoint(t, index, spec)
		s := b.placedWhile(t, index, func() {})
		if s.GetState() != attunev1.PointState_POINT_STATE_PLACED || s.GetMechanism() != "hook" {
			t.Fatalf("point: %v", s)
		}
	}
	for range 5 {
		target.Ask(t, "0") // one block of 100 bytes
	}
	if got := b.counts(t, 4, 5); got != 5 {
		t.Errorf("%d blocks of 100 bytes, want 5", got)
	}
	b.removePoint(t, 3)
	for range 5 {
		target.Ask(t, "0")
	}
	if got := b.counts(t, 4, 5); got != 5 {
		t.Errorf("%d blocks of 100 bytes without the other point, want 5", got)
	}
	b.stop(t)
	target.EndWell(t)
}

// Points of all kinds are at one function together, each by its own: they come and go
// one by one, and every one counts each call.
func TestPointsAtOneFunction(t *testing.T) {
	b := start(t)
	b.sampleEvery(t, 20*time.Millisecond)
	target := targets.Start(t, targets.Build(t, "testdata/many.c", "-O1", "-pthread"), b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	timed, taken, narrow := call("many_0?", false), call("many_03", false), call("many_03", false)
	timed.Place = attunev1.Place_PLACE_BOTH
	recorded := call("many_03", false)
	recorded.Place, recorded.Delivery = attunev1.Place_PLACE_BOTH, attunev1.Delivery_DELIVERY_EVENT
	taken.Captures = []*attunev1.Capture{{Name: "x", Source: &attunev1.Capture_Parameter{}}}
	taken.ValueCapture = "x"
	narrow.MaxValue = 1 << 40
	specs := []*attunev1.MeasurePoint{call("many_*", false), call("many_03", false), timed, taken, narrow, recorded}
	specs[0].GetFunction().Symbols = []string{"many_0?"}
	for i, spec := range specs {
		b.addPoint(t, uint32(1+i), spec)
		s := b.placedWhile(t, uint32(1+i), func() { target.Ask(t, "0") })
		if s.GetMechanism() != "patch" {
			t.Fatalf("point %d: %v", 1+i, s)
		}
	}
	const calls = 100
	target.Ask(t, fmt.Sprint(calls))
	counted := b.removed(t, 2)
	target.Ask(t, fmt.Sprint(calls))
	for point, n := range b.removed(t, 1, 3, 4, 5, 6) {
		counted[point] += n
	}
	for point, want := range map[uint32]uint64{1: 20, 2: 1, 3: 20, 4: 2, 5: 2, 6: 2} {
		if got := counted[point]; got != want*calls*manyThreads {
			t.Errorf("point %d counted %d calls of %d", point, got, want*calls*manyThreads)
		}
	}
	b.stop(t)
	target.EndWell(t)
}
