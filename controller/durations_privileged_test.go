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
	tests := map[string]struct {
		program string
		outside bool
		place   attunev1.Place
		state   attunev1.PointState
	}{
		"timed":              {program, false, attunev1.Place_PLACE_BOTH, attunev1.PointState_POINT_STATE_PLACED},
		"outside":            {program, true, attunev1.Place_PLACE_ENTRY, attunev1.PointState_POINT_STATE_PLACED},
		"timed from outside": {program, true, attunev1.Place_PLACE_BOTH, attunev1.PointState_POINT_STATE_REFUSED},
		"return, outside":    {program, true, attunev1.Place_PLACE_EXIT, attunev1.PointState_POINT_STATE_REFUSED},
		"static, outside":    {static, true, attunev1.Place_PLACE_BOTH, attunev1.PointState_POINT_STATE_REFUSED},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(c *Config) {
				if c.UseBPF = true; test.outside {
					c.LibraryPath = ""
				}
			})
			spec := call("passed", false)
			spec.Place = test.place
			b.addPoint(t, 1, spec)
			target := targets.Start(t, test.program, b.controller.Environment()...)
			if test.outside {
				if err := b.controller.Follow(target.PID); err != nil {
					t.Fatal(err)
				}
			}
			s := b.placedWhile(t, 1, func() { target.Ask(t, "0") })
			refused := s.GetState() == attunev1.PointState_POINT_STATE_REFUSED
			if s.GetState() != test.state || refused && !strings.Contains(s.GetReason(), "can throw exceptions") {
				t.Errorf("point: %v", s)
			}
			if got := target.Ask(t, "10"); got != "5 caught" {
				t.Errorf("the program: %s", got)
			}
			b.stop(t)
			target.EndWell(t)
		})
	}
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
