// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestManyAreas changes one process after the other, each with an objective
// of its own.
func TestManyAreas(t *testing.T) {
	all := newProcesses(2 * time.Second)
	for n := range 3 * maxAreas {
		all.disturb(time.Duration(n)*time.Second, area{"t", fmt.Sprint(n)}, uint64(n))
	}
	if n := len(all.disturbed); n > maxAreas {
		t.Errorf("%d areas are remembered, want at most %d", n, maxAreas)
	}
	last := &proposal{tunlet: &tunlet{name: "t"}, spec: &attunev1.Proposal{Scope: fmt.Sprint(3*maxAreas - 1)}}
	if at, want := all.quiet(last), (3*maxAreas-1)*time.Second; at <= want {
		t.Errorf("quiet from %v on, want after the last change at %v", at, want)
	}
}

// TestManyProposals: those that hold up nobody count in their own process only, which may have
// any number of places.
func TestManyProposals(t *testing.T) {
	proposed := func(c *Core, process uint64) string {
		p := &attunev1.Proposal{Id: fmt.Sprint("p", process), Scope: fmt.Sprint(process), Changes: []*attunev1.Change{changeOf("k", process)}}
		c.Step(0, Propose{Tunlet: "t", Proposal: p})
		for _, v := range append(c.Proposals(), c.Refusals()...) {
			if v.GetId() == p.GetId() {
				return v.GetState()
			}
		}
		return "unknown"
	}
	tests := []struct {
		name, program string
		fill          func(c *Core, n uint64)
		want          string
	}{
		{"kept in other processes", "", func(c *Core, n uint64) {
			c.Step(0, Adopt{Held{ID: fmt.Sprint("old", n), Process: n + 2, Knob: "k", Tunlet: "t", Kept: true}})
		}, "waiting"},
		{"kept at places of the process", "", func(c *Core, n uint64) {
			c.Step(0, Adopt{Held{ID: fmt.Sprint("old", n), Process: 1, Knob: fmt.Sprint("other@", n), Tunlet: "t", Kept: true}})
		}, "refused"},
		{"waiting for a sibling's trial", "app", func(c *Core, n uint64) { proposed(c, n+2) }, "waiting"},
		{"waiting for their turns", "", func(c *Core, n uint64) { proposed(c, n+2) }, "refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Mode: ModeTune})
			c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}, {Name: "other"}}}})
			for n := range uint64(maxOpen + 1) {
				c.Step(0, ProcessStarted{Process: n + 1, Executable: "/bin/app", Program: tt.program})
			}
			for n := range uint64(maxOpen) {
				tt.fill(c, n)
			}
			if got := proposed(c, 1); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
