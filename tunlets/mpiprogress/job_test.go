// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import (
	"slices"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// startJob starts a job of four ranks on each of the nodes.
func startJob(h *tunlettest.Harness, hosts ...string) map[string][]*tunlettest.Process {
	out := map[string][]*tunlettest.Process{}
	for i, host := range hosts {
		for j := range 4 {
			p := rank(int32(4*i+j), 0.5)
			p.Host = host
			out[host] = append(out[host], h.StartProcess(p))
		}
	}
	return out
}

// rest has ranks sleep.
func rest(ranks []*tunlettest.Process) {
	for _, p := range ranks {
		p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e7, 0
	}
}

func spinAll(ranks []*tunlettest.Process) {
	for _, p := range ranks {
		spin(p, 0.5)
	}
}

// only returns the one proposal there must be, with so many changes.
func only(t *testing.T, h *tunlettest.Harness, changes int) tunlettest.Proposed {
	t.Helper()
	if len(h.Proposals) != 1 || len(h.Proposals[0].GetChanges()) != changes {
		t.Fatalf("proposals %v, want one with %d changes", h.Proposals, changes)
	}
	return h.Proposals[0]
}

func TestNodesOfAJobAreChangedTogether(t *testing.T) {
	h := start(t)
	startJob(h, "a", "b", "c")
	h.Run(time.Second)
	p := only(t, h, 12)
	values := 0
	for _, o := range h.Objectives {
		if o.GetScope() != p.GetScope() {
			continue
		}
		if values++; o.GetValue() < 1600 || o.GetValue() > 1760 {
			t.Errorf("objective %v, want 12 x 140 calls/s", o.GetValue())
		}
	}
	if values < 5 {
		t.Errorf("%d values of the objective %q that judges it, want 5 at least", values, p.GetScope())
	}
}

func TestNodeWaitsForAnother(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b")
	for _, p := range job["b"] { // busy, but not seen to spin yet
		p.Rates[sdk.InvoluntarySwitches] = 40_000
	}
	h.Run(1500 * time.Millisecond)
	if len(h.Proposals) > 0 {
		t.Fatalf("proposed for one node alone: %v", h.Proposals)
	}
	spinAll(job["b"])
	h.Run(500 * time.Millisecond)
	only(t, h, 8)
}

func TestRanksNotHeardOfAreWaitedFor(t *testing.T) {
	h := start(t)
	var last *tunlettest.Process
	for _, number := range []int32{0, 1, 2, 3, 4, 6, 7, 5} {
		last = rank(number, 0.5)
		if last.Host = "a"; number >= 4 {
			last.Host = "b"
		}
		if number != 5 {
			h.StartProcess(last)
		}
	}
	h.Run(1500 * time.Millisecond)
	if len(h.Proposals) > 0 {
		t.Fatalf("proposed without rank 5: %v", h.Proposals)
	}
	h.StartProcess(last)
	h.Run(450 * time.Millisecond)
	only(t, h, 8)
}

func TestNodeWaitsNotForEver(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b")
	for _, p := range job["b"] {
		p.Hits = nil
	}
	h.Run(7 * time.Second)
	if p := only(t, h, 4); p.GetScope() != "node/a" {
		t.Errorf("judged by %q, want the calls of the node that is changed", p.GetScope())
	}
}

func TestNodeThatRestsIsNotWaitedFor(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b")
	rest(job["b"])
	h.Run(time.Second)
	only(t, h, 4)
}

func TestOtherNodeWaitsForTheJudgement(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b")
	rest(job["b"])
	h.Run(time.Second)
	p := only(t, h, 4)
	h.SetState(p.GetId(), applied, "")
	spinAll(job["b"])
	h.Run(2 * time.Second)
	only(t, h, 4)
	h.SetState(p.GetId(), undone, "no gain")
	h.Run(11 * time.Second)
	only(t, h, 4)
	h.Run(4 * time.Second)
	if len(h.Proposals) != 2 || len(h.Proposals[1].GetChanges()) != 8 {
		t.Errorf("proposals %v, want a second one for both nodes", h.Proposals)
	}
}

func TestRoomOnOneNode(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b")
	h.Run(time.Second)
	p := only(t, h, 8)
	h.SetState(p.GetId(), applied, "")
	h.Run(500 * time.Millisecond)
	h.SetState(p.GetId(), kept, "")
	room := func(host string) {
		for _, r := range job[host] {
			r.Gauges[sdk.CPUsAllowed] = 4
			r.Rates[sdk.RunTime], r.Rates[sdk.RunqueueWait] = 1e9, 0
		}
	}
	room("b")
	h.Run(5 * time.Second)
	if len(h.Withdrawals) != 1 || h.Withdrawals[0].GetProposalId() != p.GetId() {
		t.Fatalf("withdrawals %v, want one", h.Withdrawals)
	}
	var want []uint64
	for _, r := range job["b"] {
		want = append(want, uint64(r.Handle))
	}
	if got := h.Withdrawals[0].GetProcesses(); !slices.Equal(got, want) {
		t.Errorf("withdrawn in processes %v, want those with room, %v", got, want)
	}
	room("a")
	h.Run(5 * time.Second)
	if len(h.Withdrawals) != 2 || len(h.Withdrawals[1].GetProcesses()) != 4 {
		t.Errorf("withdrawals %v, want one of each node", h.Withdrawals)
	}
}

// Where one node refuses, the others are not refused with it.
func TestNodesAreTriedApartAfterAFailure(t *testing.T) {
	h := start(t)
	startJob(h, "a", "b")
	h.Run(time.Second)
	h.SetState(only(t, h, 8).GetId(), attunev1.ProposalState_PROPOSAL_STATE_FAILED, "b's policy forbids it")
	h.Run(15 * time.Second)
	if len(h.Proposals) != 2 || len(h.Proposals[1].GetChanges()) != 4 {
		t.Fatalf("proposals %v, want a second one for one node", h.Proposals)
	}
	h.SetState(h.Proposals[1].GetId(), kept, "")
	h.Run(2 * time.Second)
	if len(h.Proposals) != 3 || len(h.Proposals[2].GetChanges()) != 4 {
		t.Fatalf("proposals %v, want a third one for the other", h.Proposals)
	}
}

// A node that comes back proposes anew while what it proposed for another one is in force.
func TestNodeComesBack(t *testing.T) {
	for _, host := range []string{"a", "b"} {
		h := start(t)
		job := startJob(h, "a", "b")
		h.Run(time.Second)
		first := only(t, h, 8)
		h.SetState(first.GetId(), kept, "")
		for _, p := range job[host] {
			h.EndProcess(p)
		}
		startJob(h, host)
		h.Run(10 * time.Second)
		if len(h.Proposals) != 2 || h.Proposals[1].GetId() == first.GetId() {
			t.Errorf("%s comes back: proposals %v, want a second one with an id of its own", host, h.Proposals)
		}
	}
}

// A job is judged on its nodes together, even if one was changed there before it.
func TestNextJobOnTheSameNodes(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b")
	h.Run(time.Second)
	h.SetState(only(t, h, 8).GetId(), kept, "")
	for _, host := range []string{"a", "b"} {
		for _, p := range job[host] {
			h.EndProcess(p)
		}
	}
	startJob(h, "a", "b")
	h.Run(time.Second)
	if len(h.Proposals) != 2 || h.Proposals[1].GetScope() != "nodes/a+b" {
		t.Errorf("proposals %v, want a second one for nodes/a+b", h.Proposals)
	}
}

// A node whose ranks have ended is not waited for by the objective.
func TestObjectiveGoesOnWithoutANode(t *testing.T) {
	h := start(t)
	job := startJob(h, "a", "b", "c")
	h.Run(time.Second)
	for _, p := range job["c"] {
		h.EndProcess(p)
	}
	before := len(h.Objectives)
	h.Run(time.Second)
	values := 0
	for _, o := range h.Objectives[before:] {
		if o.GetScope() == "nodes/a+b" && o.GetValue() > 1000 {
			values++
		}
	}
	if values < 5 {
		t.Errorf("%d values for the nodes that are left, want 5 at least", values)
	}
}
