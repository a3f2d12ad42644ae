// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// steady are points that stay, by index, with how often testdata/many.c hits
// each in a round of one thread.
func steady() map[uint32]*attunev1.MeasurePoint {
	hook := &attunev1.MeasurePoint{Id: "hook", MinValue: 64, MaxValue: 64, Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}}
	return map[uint32]*attunev1.MeasurePoint{1: hook, 2: call("getppid", true), 3: call("many_00", false), 4: call("many_01", false)}
}

// Points of other functions, and others of the same ones, come, are refused and
// go while two threads call everything without a pause: those that stay count
// each call, or at most each, those that are lossy.
func testComingsAndGoings(t *testing.T, mechanisms map[uint32]string, lossy []uint32, options ...func(*Config)) {
	b := start(t, options...)
	b.sampleEvery(t, 20*time.Millisecond)
	target := targets.Start(t, targets.Build(t, "testdata/many.c", "-O1", "-pthread"), b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	for index, spec := range steady() {
		b.addPoint(t, index, spec)
		s := b.placedWhile(t, index, func() { target.Ask(t, "0") })
		if want := mechanisms[index]; want != "" && s.GetMechanism() != want {
			t.Fatalf("point: %v", s)
		}
	}
	halt := make(chan struct{})
	made := hammer(t, target, halt)
	for round := range uint32(12) {
		b.churn(t, 100+20*round)
	}
	close(halt)
	want := <-made
	counted := b.removed(t, slices.Collect(maps.Keys(steady()))...)
	for index, spec := range steady() {
		if got := counted[index]; got > want || got < want && (got == 0 || !slices.Contains(lossy, index)) {
			t.Errorf("%s counted %d of %d (%d)", spec.GetId(), got, want, int64(got-want))
		}
	}
	b.stop(t)
	target.EndWell(t)
}

// hammer has the program call everything until halt is closed, and then says
// how often.
func hammer(t *testing.T, target *targets.Target, halt <-chan struct{}) <-chan uint64 {
	t.Helper()
	made := make(chan uint64, 1)
	go func() { // ends when halt is closed
		const rounds = 1000
		for all := uint64(0); ; all += rounds * manyThreads {
			select {
			case <-halt:
				made <- all
				return
			default:
				target.Ask(t, strconv.Itoa(rounds))
			}
		}
	}()
	return made
}

// churn adds points and takes them out again: eight of other functions, some at
// their returns, and more of those that are measured already.
func (b *bench) churn(t *testing.T, first uint32) {
	t.Helper()
	specs := []*attunev1.MeasurePoint{call("many_0[01]", false), call("getpp?d", true)}
	for i := range 8 {
		spec := call(fmt.Sprintf("many_%02d", 10+i), false)
		if i%3 == 0 {
			spec.Place = attunev1.Place_PLACE_BOTH
		}
		specs = append(specs, spec)
	}
	var indexes []uint32
	for i, spec := range specs {
		spec.SampleEvery = first // another point than any before
		indexes = append(indexes, first+uint32(i))
		b.requests <- b.adding(indexes[i], spec)
	}
	for answered := map[uint32]bool{}; len(answered) < len(specs); {
		if s := b.anyPlaced(t); s.GetPoint() >= first {
			answered[s.GetPoint()] = true
		}
	}
	b.requests <- b.removing(indexes...)
}

// A jump that reaches into the next function would lead elsewhere as soon as
// another tool had a breakpoint at that one's entry: exits right before it are
// patched by a whole jump; where there is no room for one, as a last resort, by
// such a jump, and the status says so.
func TestJumpsIntoAnotherFunctionAreTheLastResort(t *testing.T) {
	for _, test := range []struct {
		source, function string
		place            attunev1.Place
		beside           bool
	}{
		{"many", "many_05", attunev1.Place_PLACE_BOTH, false},
		{"patched", "p_short", attunev1.Place_PLACE_EXIT, true},
	} {
		program := targets.Build(t, "testdata/"+test.source+".c", "-O1", "-pthread", "-lm", "-falign-functions=1")
		s := placedIn(t, program, test.function, test.place)
		for strings.Contains(s.GetReason(), "where the process has memory") { // the kernel's choice
			s = placedIn(t, program, test.function, test.place)
		}
		if s.GetMechanism() != "patch" || strings.Contains(s.GetReason(), "another function begins") != test.beside {
			t.Errorf("%s: %v", test.function, s)
		}
	}
}

// placedIn says what becomes of a point in a new process.
func placedIn(t *testing.T, program, function string, place attunev1.Place) *attunev1.PointStatus {
	t.Helper()
	b := start(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	spec := call(function, false)
	spec.Place = place
	b.addPoint(t, 1, spec)
	s := b.placedWhile(t, 1, func() { target.Ask(t, "0") })
	b.stop(t)
	target.EndWell(t)
	return s
}

func TestComingsAndGoingsLoseNothing(t *testing.T) {
	testComingsAndGoings(t, map[uint32]string{1: "hook", 2: "got", 3: "patch"}, nil)
}
