// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// Calls that are not counted are not none: while the overhead budget has the
// points of some ranks off, the objective has no value, rather than a low one.
func TestPointsThatAreOffAreUnknown(t *testing.T) {
	id := func(p *tunlettest.Process) string { return fmt.Sprintf("mpi@%d", p.Handle) }
	for off := 1; off <= 4; off++ {
		t.Run(fmt.Sprintf("%d of 4 off", off), func(t *testing.T) {
			h := start(t)
			ranks := startRanks(h, 4, 0.5)
			h.Run(500 * time.Millisecond)
			h.SetState(only(t, h, 4).GetId(), applied, "")
			before := len(h.Objectives)
			for _, p := range ranks[:off] {
				h.SwitchOff(id(p), p)
			}
			h.Run(time.Second)
			if values := h.Objectives[before:]; len(values) > 0 {
				t.Errorf("%d values while calls were not counted: %v", len(values), values[0])
			}
			for _, p := range ranks[:off] {
				h.SwitchOn(id(p), p)
			}
			h.Run(time.Second)
			values := h.Objectives[before:]
			if len(values) < 5 {
				t.Errorf("%d values after the points were back, want 5 at least", len(values))
			}
			for _, o := range values {
				if o.GetValue() < 540 {
					t.Errorf("objective %v, want 4 x 140 calls/s", o.GetValue())
				}
			}
		})
	}
}

func TestNothingIsProposedWhileCallsAreUnknown(t *testing.T) {
	h := start(t)
	ranks := startRanks(h, 4, 0.5)
	h.Round()
	h.SwitchOff(fmt.Sprintf("mpi@%d", ranks[2].Handle), ranks[2])
	h.Run(5 * time.Second)
	if len(h.Proposals) > 0 {
		t.Errorf("proposed what cannot be judged: %v", h.Proposals)
	}
	h.SwitchOn(fmt.Sprintf("mpi@%d", ranks[2].Handle), ranks[2])
	h.Run(time.Second)
	only(t, h, 4)
}

// A node whose calls are not counted for the time being spins all the same, and
// would hold up the one that is changed.
func TestNodeWithUnknownCallsIsChangedWithTheOther(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b")
	h.Run(200 * time.Millisecond)
	h.SwitchOff(fmt.Sprintf("mpi@%d", job["a"][1].Handle), job["a"][1])
	h.Run(7 * time.Second)
	if p := only(t, h, 8); p.GetScope() != "node/b" {
		t.Errorf("judged by %q, want the node whose calls are known", p.GetScope())
	}
}
