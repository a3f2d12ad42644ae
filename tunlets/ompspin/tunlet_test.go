// SPDX-License-Identifier: Apache-2.0

package ompspin_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/ompspin"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

const (
	kept   = attunev1.ProposalState_PROPOSAL_STATE_KEPT
	undone = attunev1.ProposalState_PROPOSAL_STATE_UNDONE
	failed = attunev1.ProposalState_PROPOSAL_STATE_FAILED
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	spinning := func() *tunlettest.Process { return team(8_000, 31_000) }
	tunlettest.Suite(t, ompspin.New, spinning, spinning)
}

// team is the measured case, one of two: two threads that spin on two CPUs. A
// region takes the given nanoseconds undisturbed.
func team(rate float64, nanos uint64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Objects = append(p.Objects, "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0")
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 0.98e9, 1.02e9
	p.Rates[sdk.VoluntarySwitches], p.Rates[sdk.InvoluntarySwitches] = 2, 279
	p.Gauges[sdk.Threads], p.Gauges[sdk.CPUsAllowed] = 2, 2
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return rate, nanos }
	return p
}

func TestTeamsSleep(t *testing.T) {
	h := tunlettest.Start(t, ompspin.New, nil, team(8_000, 31_000), team(126, 31_000))
	h.Run(1500 * time.Millisecond)
	if len(h.Proposals) != 1 || len(h.Proposals[0].GetChanges()) != 2 {
		t.Fatalf("proposals %v, want one of two changes", h.Proposals)
	}
	p := h.Proposals[0]
	for _, c := range p.GetChanges() {
		if c.GetKnob() != "gomp.spin_count" || c.GetAction().GetSetting().GetValue().GetUnsigned() != 0 {
			t.Errorf("change %v, want gomp.spin_count = 0", c)
		}
	}
	// 14,000 regions/s of each were measured.
	if g := p.GetPredictedGain(); g < 3 || g > 4 {
		t.Errorf("predicted gain %v, want 3.4", g)
	}
	// What the change is judged by must be cheap: of many regions, durations cost more
	// than may be spent.
	for _, point := range h.Points() {
		if !strings.HasPrefix(point, "regions@") {
			t.Errorf("point %v while the change is judged", point)
		}
	}
	if len(h.Points()) != 2 {
		t.Errorf("points %v, want one for each team", h.Points())
	}
	h.SetState(p.GetId(), kept, "")
	if len(h.Points()) > 0 {
		t.Errorf("points %v after the verdict", h.Points())
	}
}

// on binds the threads of a team to CPUs.
func on(cpus string, p *tunlettest.Process) *tunlettest.Process {
	p.Gauges[sdk.CPUsAllowed] = float64(sdk.CPUList(cpus).Count())
	p.Details = func(time.Duration) *sdk.Details {
		return &sdk.Details{Threads: &sdk.ThreadDetails{Total: 2, Items: []sdk.ThreadDetail{
			{TID: 11, StartTicks: 1, CPUsAllowed: cpus}, {TID: 12, StartTicks: 1, CPUsAllowed: cpus},
		}}}
	}
	return p
}

// Of teams that are bound, those that share CPUs sleep, and spin again when one of them is
// left, whoever computes elsewhere.
func TestTeamsOnOneSetOfCPUs(t *testing.T) {
	second := on("0-1", team(8_000, 31_000))
	h := tunlettest.Start(t, ompspin.New, nil, on("0-1", team(8_000, 31_000)), second, on("2-3", team(8_000, 31_000)))
	h.Run(1500 * time.Millisecond)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	id, changes := h.Proposals[0].GetId(), h.Proposals[0].GetChanges()
	if len(changes) != 2 || changes[0].GetProcess() != 1 || changes[1].GetProcess() != 2 {
		t.Fatalf("changes %v, want those of the two that share CPUs", changes)
	}
	h.SetState(id, kept, "")
	h.Run(10 * time.Second)
	if len(h.Withdrawals) > 0 {
		t.Fatalf("withdrawn while both are there: %v", h.Withdrawals)
	}
	h.EndProcess(second)
	h.StartProcess(on("4-5", team(8_000, 31_000)))
	h.Run(3 * time.Second)
	if len(h.Withdrawals) != 1 || h.Withdrawals[0].GetProposalId() != id {
		t.Errorf("withdrawals %v, want that of %s", h.Withdrawals, id)
	}
}

// Teams that sleep are followed to the CPUs that they are bound to meanwhile, and nothing
// is read of their threads when that is known.
func TestFollowsBindings(t *testing.T) {
	for _, tt := range []struct {
		name, before, first, second string
		released                    int
	}{
		{"apart, as many CPUs", "0-1", "0-1", "2-3", 1},
		{"apart, fewer CPUs", "0-2", "0-1", "2-3", 1},
		{"apart, more CPUs", "0-1", "0-1", "2-4", 1},
		{"together, as many CPUs", "0-1", "2-3", "2-3", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, second := on(tt.before, team(8_000, 31_000)), on(tt.before, team(8_000, 31_000))
			h := tunlettest.Start(t, ompspin.New, nil, first, second)
			h.Run(1500 * time.Millisecond)
			if len(h.Proposals) != 1 {
				t.Fatalf("proposals %v, want one", h.Proposals)
			}
			h.SetState(h.Proposals[0].GetId(), kept, "")
			h.Run(10 * time.Second)
			if len(h.Withdrawals) > 0 {
				t.Fatalf("withdrawn while both are there: %v", h.Withdrawals)
			}
			on(tt.first, first)
			on(tt.second, second)
			read, rounds := 0, 0
			for end := h.Elapsed() + 10*time.Second; h.Elapsed() < end; rounds++ {
				h.Round()
				read += len(h.DetailsWanted(first))
			}
			if len(h.Withdrawals) != tt.released {
				t.Errorf("withdrawals %v, want %d", h.Withdrawals, tt.released)
			}
			if read > rounds/20 {
				t.Errorf("threads are read in %d of %d rounds", read, rounds)
			}
		})
	}
}

// Of a team that waits for a CPU no longer nothing is read, though it is not known yet where
// all its threads may run.
func TestReadsNothingOfWhoRests(t *testing.T) {
	halfRead := func() *tunlettest.Process {
		p := on("0", team(0, 0))
		p.Gauges[sdk.CPUsAllowed] = 2
		return p
	}
	teams := []*tunlettest.Process{halfRead(), halfRead()}
	h := tunlettest.Start(t, ompspin.New, nil, teams...)
	h.Run(time.Second)
	if len(h.DetailsWanted(teams[0])) == 0 {
		t.Fatal("nothing is read of teams in trouble")
	}
	for _, p := range teams {
		p.Rates[sdk.RunqueueWait] = 0
	}
	h.Run(30 * time.Second)
	for _, p := range teams {
		if kinds := h.DetailsWanted(p); len(kinds) > 0 {
			t.Errorf("%v are read of a team that rests", kinds)
		}
	}
}

// Who is alone again spins again, and sleeps again when there is company.
func TestFollowsCoLocation(t *testing.T) {
	first, second := team(8_000, 31_000), team(8_000, 31_000)
	h := tunlettest.Start(t, ompspin.New, nil, first, second)
	h.Run(1500 * time.Millisecond)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	id := h.Proposals[0].GetId()
	h.SetState(id, kept, "")
	h.Run(10 * time.Second)
	if len(h.Withdrawals) > 0 {
		t.Fatalf("withdrawn while both are there: %v", h.Withdrawals)
	}
	h.EndProcess(second)
	first.Rates[sdk.RunTime], first.Rates[sdk.RunqueueWait] = 1.9e9, 0.05e9
	h.Run(3 * time.Second)
	if len(h.Withdrawals) != 1 || h.Withdrawals[0].GetProposalId() != id {
		t.Fatalf("withdrawals %v, want that of %s", h.Withdrawals, id)
	}
	h.SetState(id, undone, "withdrawn")
	first.Rates[sdk.RunTime], first.Rates[sdk.RunqueueWait] = 0.98e9, 1.02e9
	h.StartProcess(team(8_000, 31_000))
	h.Run(3 * time.Second)
	if len(h.Proposals) != 2 {
		t.Errorf("proposals %v, want another one", h.Proposals)
	}
}

// Teams that work by turns, now together and now alone, are left alone for longer
// each time.
func TestTeamsByTurns(t *testing.T) {
	teams := []*tunlettest.Process{team(8_000, 31_000), team(8_000, 31_000)}
	h := tunlettest.Start(t, ompspin.New, nil, teams...)
	work := func(run, wait float64) {
		for i, p := range teams {
			p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = run, wait
			if i > 0 && wait == 0 {
				p.Rates[sdk.RunTime] = 0
			}
		}
	}
	for h.Elapsed() < 5*time.Minute {
		work(0.98e9, 1.02e9)
		h.Run(4 * time.Second)
		if n := len(h.Proposals); n > 0 {
			h.SetState(h.Proposals[n-1].GetId(), kept, "")
		}
		work(1.9e9, 0)
		h.Run(4 * time.Second)
		if n := len(h.Withdrawals); n > 0 {
			h.SetState(h.Withdrawals[n-1].GetProposalId(), undone, "withdrawn")
		}
	}
	if n := len(h.Proposals); n < 4 || n > 10 {
		t.Errorf("%d proposals in 5 minutes, want fewer and fewer", n)
	}
}

func TestSilent(t *testing.T) {
	sleeping := func() *tunlettest.Process {
		p := team(14_000, 31_000)
		p.Rates[sdk.VoluntarySwitches] = 26_000
		return p
	}
	wide := func() *tunlettest.Process {
		p := team(8_000, 31_000)
		p.Gauges[sdk.CPUsAllowed] = 8
		return p
	}
	llvm := team(8_000, 31_000)
	llvm.Objects = []string{"/usr/lib/x86_64-linux-gnu/libomp.so.5"}
	for _, tt := range []struct {
		name  string
		teams []*tunlettest.Process
	}{
		{"alone beside a stranger", []*tunlettest.Process{team(8_000, 31_000)}},
		{"beside a program without OpenMP", []*tunlettest.Process{team(8_000, 31_000), tunlettest.Computing()}},
		{"sleep already", []*tunlettest.Process{sleeping(), sleeping()}},
		{"CPUs of its own for each, beside a stranger", []*tunlettest.Process{on("0-1", team(8_000, 31_000)), on("2-3", team(8_000, 31_000))}},
		{"a CPU for each thread of all", []*tunlettest.Process{wide(), wide()}},
		{"short regions, in step: sleeping costs more", []*tunlettest.Process{team(256_000, 1_100), team(256_000, 1_100)}},
		{"LLVM's run-time", []*tunlettest.Process{llvm}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, ompspin.New, nil, tt.teams...)
			rounds, counted := 0, 0
			for ; h.Elapsed() < 120*time.Second; rounds++ {
				h.Round()
				counted += min(1, len(h.Points()))
			}
			if len(h.Proposals) > 0 {
				t.Errorf("proposed %v", h.Proposals[0])
			}
			if counted > rounds/4 {
				t.Errorf("regions are counted in %d of %d rounds, want a quarter at most", counted, rounds)
			}
		})
	}
}

func TestGivesUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state attunev1.ProposalState
		want  int
	}{{"undone", undone, 3}, {"failed", failed, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, ompspin.New, nil, team(8_000, 31_000), team(8_000, 31_000))
			for range 6 {
				h.Run(15 * time.Second)
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
