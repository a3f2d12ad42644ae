// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestDurationsEndWhereCallsReturn: a call of testdata/tails.c takes 2 ms, however
// it ends; one that ends otherwise than by a return has no duration.
func TestDurationsEndWhereCallsReturn(t *testing.T) {
	const calls, least = 6, uint64(2 * time.Millisecond)
	tests := []struct {
		function string
		returns  uint64
		jumps    bool // only the kernel sees when it returns
	}{
		{"t_jumps", calls, true},
		{"t_sometimes", calls, true},
		{"t_returns", calls, false},
		{"t_left", calls / 2, false},
		{"t_ends", calls / 2, false},
	}
	program := targets.Build(t, "testdata/tails.c", "-O2", "-pthread", "-fno-reorder-blocks-and-partition")
	for _, test := range tests {
		t.Run(test.function, func(t *testing.T) {
			b := start(t, func(c *Config) { c.UseBPF = true })
			b.sampleEvery(t, time.Hour)
			spec := call(test.function, false)
			spec.Place = attunev1.Place_PLACE_BOTH
			b.addPoint(t, 1, spec)
			target := targets.Start(t, program, b.controller.Environment()...)
			s := b.placedWhile(t, 1, func() { target.Ask(t, "0") })
			if s.GetState() != attunev1.PointState_POINT_STATE_PLACED {
				t.Fatalf("point: %v", s)
			}
			if test.jumps && (s.GetMechanism() == "patch" || !strings.Contains(s.GetReason(), "jump to another function")) {
				t.Errorf("point: %v", s)
			}
			target.Ask(t, "6")
			b.sampleEvery(t, 20*time.Millisecond)
			a := event(t, b, "durations", func(m *attunev1.PublishRequest) (*attunev1.Aggregate, bool) {
				for _, a := range m.GetAggregates().GetAggregates() {
					if a.GetPoint() == 1 && a.GetCount() > 0 {
						return a, true
					}
				}
				return nil, false
			})
			if a.GetCount() != test.returns || a.GetMin() < least {
				t.Errorf("%d durations, %v and more; want %d of %v and more",
					a.GetCount(), time.Duration(a.GetMin()), test.returns, time.Duration(least))
			}
			b.stop(t)
			target.EndWell(t)
		})
	}
}

// TestExceptionsPass: a return probe of the kernel changes the return address, and
// an exception that came there would end the program.
func TestExceptionsPass(t *testing.T) {
	program := targets.BuildWith(t, "g++", "thrown", "-O2", "testdata/thrown.cc")
	static := targets.BuildWith(t, "g++", "thrown", "-O2", "-static", "testdata/thrown.cc")
	tests := map[string]spared{
		"timed":              {program, false, attunev1.Place_PLACE_BOTH, ""},
		"outside":            {program, true, attunev1.Place_PLACE_ENTRY, ""},
		"timed from outside": {program, true, attunev1.Place_PLACE_BOTH, "can throw exceptions"},
		"return, outside":    {program, true, attunev1.Place_PLACE_EXIT, "can throw exceptions"},
		"static, outside":    {static, true, attunev1.Place_PLACE_BOTH, "can throw exceptions"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, "5 caught") })
	}
}

// TestFibersPass: the kernel forgets where a call returns to when another one begins on a
// stack above it, and the return would end the program.
func TestFibersPass(t *testing.T) {
	program := targets.Build(t, "testdata/fibers.c", "-O2")
	static := targets.Build(t, "testdata/fibers.c", "-O2", "-static")
	tests := map[string]spared{
		"counted":            {program, false, attunev1.Place_PLACE_ENTRY, ""},
		"timed":              {program, false, attunev1.Place_PLACE_BOTH, "can switch between stacks"},
		"outside":            {program, true, attunev1.Place_PLACE_ENTRY, ""},
		"timed from outside": {program, true, attunev1.Place_PLACE_BOTH, "can switch between stacks"},
		"static, outside":    {static, true, attunev1.Place_PLACE_BOTH, "can switch between stacks"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, "10 passed") })
	}
}

// spared is a program in which a return probe of the kernel at its function passed would end
// it.
type spared struct {
	program string
	outside bool
	place   attunev1.Place
	why     string // the point is refused; "": it is placed
}

// check measures passed, which is called 10 times, and has the program answer.
func (s spared) check(t *testing.T, answer string) {
	b := start(t, func(c *Config) {
		if c.UseBPF = true; s.outside {
			c.LibraryPath = ""
		}
	})
	spec := call("passed", false)
	spec.Place = s.place
	b.addPoint(t, 1, spec)
	target := targets.Start(t, s.program, b.controller.Environment()...)
	if s.outside {
		if err := b.controller.Follow(target.PID); err != nil {
			t.Fatal(err)
		}
	}
	status := b.placedWhile(t, 1, func() { target.Ask(t, "0") })
	refused := status.GetState() == attunev1.PointState_POINT_STATE_REFUSED
	if refused != (s.why != "") || !strings.Contains(status.GetReason(), s.why) {
		t.Errorf("point: %v", status)
	}
	if got := target.Ask(t, "10"); got != answer {
		t.Errorf("the program: %s", got)
	}
	b.stop(t)
	target.EndWell(t)
}

// TestDurationOfLoopHeadIsRefused: each turn of the loop would begin it anew.
func TestDurationOfLoopHeadIsRefused(t *testing.T) {
	program := targets.Build(t, "testdata/tails.c", "-O2", "-pthread")
	for name, kernel := range map[string]bool{"by patch": false, "by the kernel": true} {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.UseBPF = kernel })
			spec := call("t_loops", false)
			spec.Place = attunev1.Place_PLACE_BOTH
			b.addPoint(t, 1, spec)
			target := targets.Start(t, program, b.controller.Environment()...)
			s := b.placedWhile(t, 1, func() { target.Ask(t, "0") })
			if s.GetState() != attunev1.PointState_POINT_STATE_REFUSED || !strings.Contains(s.GetReason(), "leads back to its entry") {
				t.Errorf("point: %v", s)
			}
			b.stop(t)
			target.EndWell(t)
		})
	}
}
