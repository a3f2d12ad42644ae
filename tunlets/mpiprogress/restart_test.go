// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// A tunlet that is started when the ranks have run for long gives their measure points time to be
// placed, and the ranks time to call.
func TestRanksThatWereThereBefore(t *testing.T) {
	for _, tt := range []struct {
		name   string
		silent bool // one rank calls nothing
		after  time.Duration
	}{{"all call", false, time.Second}, {"one does not", true, 10 * time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t)
			ranks := startRanks(h, 4, 0.5)
			rest(ranks)
			h.Run(time.Minute)
			spinAll(ranks)
			if tt.silent {
				ranks[3].Hits = nil
			}
			h.Unanswered = func(*attunev1.MeasurePoint, *tunlettest.Process) bool { return true }
			tunlettest.Restart(h)
			h.Run(time.Second)
			h.Unanswered = nil
			h.Run(15 * time.Second)
			if len(h.Remarks) > 0 || len(h.Proposals) != 1 {
				t.Fatalf("remarks %v, proposals %v, want one proposal", h.Remarks, h.Proposals)
			}
			if waited := h.Proposals[0].At - time.Minute; waited < tt.after || waited > tt.after+time.Second {
				t.Errorf("proposed after %v, want %v", waited, tt.after)
			}
		})
	}
}

// What several nodes had kept together is watched by them together, also when another node
// joins after the tunlet was started again.
func TestKeptTogether(t *testing.T) {
	h := start(t)
	startJob(h, "a", "b")
	h.Run(time.Second)
	kept := only(t, h, 8)
	h.SetState(kept.GetId(), attunev1.ProposalState_PROPOSAL_STATE_APPLIED, "")
	h.SetState(kept.GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	tunlettest.Restart(h, kept.Proposal)
	h.Run(2 * time.Second)
	for number := range int32(4) {
		p := rank(8+number, 0.5)
		p.Host = "c"
		h.StartProcess(p)
	}
	h.Run(2 * time.Second)
	before := len(h.Objectives)
	h.Run(5 * time.Second)
	if !slices.ContainsFunc(h.Objectives[before:], func(o *attunev1.ObjectiveSample) bool { return o.GetScope() == kept.GetScope() }) {
		t.Errorf("no value of %q by which %s was kept", kept.GetScope(), kept.GetId())
	}
}

// What several nodes had kept together is looked at by them together, where it is not counted
// all the time; also after one of them could not count for a while.
func TestDearPointsAreLookedAtTogether(t *testing.T) {
	h := start(t)
	h.Mechanism, h.CostNanos = "uprobe_multi", 10_000
	job := startJob(h, "a", "b")
	h.Run(2 * time.Second)
	p := only(t, h, 8)
	h.SetState(p.GetId(), attunev1.ProposalState_PROPOSAL_STATE_APPLIED, "")
	h.SetState(p.GetId(), kept, "")
	values := func() int {
		before := len(h.Objectives)
		h.Run(90 * time.Second)
		return len(slices.DeleteFunc(slices.Clone(h.Objectives[before:]), func(o *attunev1.ObjectiveSample) bool { return o.GetScope() != p.GetScope() }))
	}
	off := job["b"][0]
	h.SwitchOff(fmt.Sprintf("mpi@%d", off.Handle), off)
	h.Run(5 * time.Second)
	h.SwitchOn(fmt.Sprintf("mpi@%d", off.Handle), off)
	for range 2 {
		if n := values(); n < 12 {
			t.Errorf("%d values of %q in 90 s", n, p.GetScope())
		}
	}
	h.SetState(p.GetId(), attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "it makes room")
	h.SetState(p.GetId(), attunev1.ProposalState_PROPOSAL_STATE_APPLYING, "to be tried again")
	if len(h.Points()) != 8 {
		t.Errorf("points %v where a change is to be tried again", h.Points())
	}
}
