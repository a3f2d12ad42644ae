// SPDX-License-Identifier: Apache-2.0

package ompthreads_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/ompthreads"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

const (
	kept   = attunev1.ProposalState_PROPOSAL_STATE_KEPT
	undone = attunev1.ProposalState_PROPOSAL_STATE_UNDONE
	failed = attunev1.ProposalState_PROPOSAL_STATE_FAILED
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) { tunlettest.Suite(t, ompthreads.New, crowd) }

// crowd is the measured case: libgomp, 8 threads on 2 CPUs, short regions.
func crowd() *tunlettest.Process {
	p := tunlettest.Computing()
	p.Objects = append(p.Objects, "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0")
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1.9e9, 2.08e9
	p.Rates[sdk.CPUUser], p.Rates[sdk.CPUSystem] = 0.5e9, 1.4e9
	p.Rates[sdk.VoluntarySwitches], p.Rates[sdk.InvoluntarySwitches] = 185_000, 30_000
	p.Gauges[sdk.Threads], p.Gauges[sdk.CPUsAllowed] = 8, 2
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 17_100, 0 }
	return p
}

// sharing is one of some that have the two CPUs together.
func sharing(processes float64) *tunlettest.Process {
	p := crowd()
	p.Rates[sdk.RunTime] /= processes
	return p
}

// threads are the numbers that a proposal asks for.
func threads(t *testing.T, p tunlettest.Proposed) (out []uint64) {
	t.Helper()
	for _, c := range p.GetChanges() {
		if c.GetKnob() != "omp.num_threads" {
			t.Errorf("knob %q", c.GetKnob())
		}
		out = append(out, c.GetAction().GetSetting().GetValue().GetUnsigned())
	}
	return out
}

func TestCrowdIsCured(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil, crowd())
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	p := h.Proposals[0]
	if got := threads(t, p); len(got) != 1 || got[0] != 2 {
		t.Errorf("threads %v, want 2", got)
	}
	if g := p.GetPredictedGain(); g < 10 || g > 40 {
		t.Errorf("predicted gain %v, want about the 19 that were measured", g)
	}
	if len(h.Objectives) < 5 || h.Objectives[4].GetValue() < 17_000 {
		t.Errorf("objective %v, want five values of 17,100", h.Objectives)
	}
	h.SetState(p.GetId(), kept, "")
	if len(h.Points()) > 0 {
		t.Errorf("points %v after the verdict", h.Points())
	}
	before := h.Delivered
	h.Run(5 * time.Second)
	if len(h.Proposals) != 1 || h.Delivered > before+2 {
		t.Errorf("%d proposals, woken %d times after the change was kept", len(h.Proposals), h.Delivered-before)
	}
}

func TestSilent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*tunlettest.Process)
	}{
		{"a CPU for each thread", func(p *tunlettest.Process) { p.Gauges[sdk.CPUsAllowed] = 8 }},
		{"threads that sleep", func(p *tunlettest.Process) { p.Rates[sdk.RunqueueWait] = 0.1e9 }},
		{"long regions: hardly any switches", func(p *tunlettest.Process) {
			p.Rates[sdk.VoluntarySwitches], p.Rates[sdk.InvoluntarySwitches] = 200, 600
			p.Rates[sdk.CPUSystem] = 0.01e9
		}},
		{"switches of something else", func(p *tunlettest.Process) {
			p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 2, 0 }
		}},
		{"another run-time beside it", func(p *tunlettest.Process) {
			p.Objects = append(p.Objects, "/usr/lib/x86_64-linux-gnu/libomp.so.5")
		}},
		{"no OpenMP", func(p *tunlettest.Process) { p.Objects = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, ompthreads.New, nil)
			p := crowd()
			tt.change(p)
			h.StartProcess(p)
			rounds, counted := 0, 0
			for ; h.Elapsed() < 120*time.Second; rounds++ {
				h.Round()
				counted += len(h.Points())
			}
			if len(h.Proposals) > 0 {
				t.Errorf("proposed %v", h.Proposals[0])
			}
			if counted > rounds/6 {
				t.Errorf("regions are counted in %d of %d rounds, want a sixth at most", counted, rounds)
			}
		})
	}
}

// Two processes share the CPUs: each gets its part, by one change.
func TestProcessesShare(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil, sharing(2))
	h.StartProcess(sharing(2))
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	if got := threads(t, h.Proposals[0]); len(got) != 2 || got[0] != 1 || got[1] != 1 {
		t.Errorf("threads %v, want one each", got)
	}
}

// Ranks that are bound to CPUs of their own get all of them. The end of one leaves
// no room to the others.
func TestRanksWithCPUsOfTheirOwn(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil)
	var last *tunlettest.Process
	for range 4 {
		last = h.StartProcess(crowd())
	}
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	if got := threads(t, h.Proposals[0]); !slices.Equal(got, []uint64{2, 2, 2, 2}) {
		t.Errorf("threads %v, want two each", got)
	}
	h.SetState(h.Proposals[0].GetId(), kept, "")
	h.EndProcess(last)
	h.Run(5 * time.Second)
	if len(h.Withdrawals) > 0 {
		t.Errorf("withdrawn: %v", h.Withdrawals)
	}
}

// With more CPUs the change is taken back; if the team is too large still, it is
// changed anew.
func TestRoom(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil)
	p := h.StartProcess(crowd())
	h.Run(time.Second)
	h.SetState(h.Proposals[0].GetId(), kept, "")
	p.Gauges[sdk.CPUsAllowed] = 4
	h.Run(2 * time.Second)
	if len(h.Withdrawals) != 1 || h.Withdrawals[0].GetProposalId() != h.Proposals[0].GetId() {
		t.Fatalf("withdrawals %v, want that of the proposal", h.Withdrawals)
	}
	h.SetState(h.Proposals[0].GetId(), undone, "withdrawn")
	h.Run(3 * time.Second)
	if len(h.Proposals) != 2 || threads(t, h.Proposals[1])[0] != 4 {
		t.Errorf("proposals %v, want another one, of 4 threads", h.Proposals)
	}
}

// When one of two ends, before or after the verdict, the other one gets its CPUs back.
func TestSurvivorIsReleased(t *testing.T) {
	for _, early := range []bool{true, false} {
		h := tunlettest.Start(t, ompthreads.New, nil, sharing(2))
		second := h.StartProcess(sharing(2))
		h.Run(time.Second)
		id := h.Proposals[0].GetId()
		if early {
			h.EndProcess(second)
		}
		h.SetState(id, kept, "")
		if !early {
			h.Run(time.Second)
			h.EndProcess(second)
		}
		h.Run(2 * time.Second)
		if len(h.Withdrawals) != 1 || h.Withdrawals[0].GetProposalId() != id {
			t.Errorf("one ended before the verdict: %v; withdrawals %v, want one", early, h.Withdrawals)
		}
	}
}

// Where the end of a process leaves no room, samples cease again.
func TestSurvivorsRest(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil)
	var last *tunlettest.Process
	for range 4 { // on two CPUs: a thread each, with three as with four
		last = h.StartProcess(sharing(4))
	}
	h.Run(time.Second)
	h.SetState(h.Proposals[0].GetId(), kept, "")
	h.EndProcess(last)
	before := h.Delivered
	h.Run(5 * time.Second)
	if len(h.Withdrawals) > 0 || h.Delivered > before+2 {
		t.Errorf("withdrawals %v, woken %d times", h.Withdrawals, h.Delivered-before)
	}
}

// A change that was taken over from an earlier session does not say its number of threads: it
// stays.
func TestChangeOfEarlierSessionStays(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil)
	p := h.StartProcess(crowd())
	tunlettest.Restart(h, &attunev1.Proposal{
		Id: "taken over c1", Changes: []*attunev1.Change{{Id: "c1", Process: uint64(p.Handle), Knob: "omp.num_threads"}},
	})
	h.Run(5 * time.Second)
	if len(h.Withdrawals) > 0 || len(h.Proposals) > 0 {
		t.Errorf("withdrawals %v, proposals %v, want none", h.Withdrawals, h.Proposals)
	}
}

func TestGivesUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state attunev1.ProposalState
		want  int
	}{{"undone", undone, 3}, {"failed", failed, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, ompthreads.New, nil, crowd())
			for range 6 {
				h.Run(14 * time.Second)
				for _, p := range h.Proposals {
					h.SetState(p.GetId(), tt.state, "")
				}
			}
			if len(h.Proposals) != tt.want {
				t.Errorf("%d proposals, want %d", len(h.Proposals), tt.want)
			}
		})
	}
}

// A proposal whose processes have ended says nothing of the next ones.
func TestEndIsNoFailure(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil)
	for n := 1; n <= 4; n++ {
		p := h.StartProcess(crowd())
		h.Run(2 * time.Second)
		if len(h.Proposals) != n {
			t.Fatalf("%d proposals in %d processes", len(h.Proposals), n)
		}
		h.EndProcess(p)
		h.SetState(h.Proposals[n-1].GetId(), undone, "the process ended before it could be judged")
	}
}

func TestRefusedPoint(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil)
	h.Refuse = func(*attunev1.MeasurePoint, *tunlettest.Process) string { return "static binary" }
	h.StartProcess(crowd())
	h.Run(20 * time.Second)
	if len(h.Proposals) > 0 || len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "static binary") {
		t.Errorf("proposals %v, remarks %v, want one remark with the reason", h.Proposals, h.Remarks)
	}
}

func TestEvaluateWaitsWithoutProgress(t *testing.T) {
	h := tunlettest.Start(t, ompthreads.New, nil)
	v, ok := h.Verdict(&attunev1.EvaluateRequest{
		ProposalId: "p", Before: &attunev1.Estimate{Median: 100}, After: &attunev1.Estimate{},
		Suggested: attunev1.Verdict_VERDICT_UNDO,
	})
	if !ok || v.GetVerdict() != attunev1.Verdict_VERDICT_WAIT {
		t.Errorf("verdict %v, want to wait", v.GetVerdict())
	}
}
