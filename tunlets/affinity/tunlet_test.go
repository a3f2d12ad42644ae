// SPDX-License-Identifier: Apache-2.0

package affinity_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/affinity"
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
	tunlettest.Suite(t, affinity.New, func() *tunlettest.Process { return bound("0") }, func() *tunlettest.Process { return bound("0") })
}

// thread is what one thread does.
type thread struct {
	run, wait float64 // parts of the time
	sleeps    float64 // per second
	cpu       uint64
	allowed   string
}

// program has threads, on a node where the application may have CPUs 0 and 1.
func program(tid int, threads ...thread) *tunlettest.Process {
	p := tunlettest.Computing()
	p.UsableCPUs = "0-1"
	allowed := map[string]bool{}
	for _, sig := range []sdk.Signal{sdk.RunTime, sdk.RunqueueWait, sdk.VoluntarySwitches} {
		p.Rates[sig] = 0
	}
	for _, th := range threads {
		p.Rates[sdk.RunTime] += th.run * 1e9
		p.Rates[sdk.RunqueueWait] += th.wait * 1e9
		p.Rates[sdk.VoluntarySwitches] += th.sleeps
		for cpu := range sdk.CPUList(th.allowed).Numbers() {
			allowed[fmt.Sprint(cpu)] = true
		}
		if sdk.CPUList(th.allowed).Count() < sdk.CPUList(p.UsableCPUs).Count() {
			p.Gauges[sdk.BoundThreads]++
		}
	}
	p.Gauges[sdk.Threads], p.Gauges[sdk.CPUsAllowed] = float64(len(threads)), float64(len(allowed))
	p.Details = func(age time.Duration) *sdk.Details {
		d := &sdk.Details{Threads: &sdk.ThreadDetails{Total: len(threads)}}
		for i, th := range threads {
			counter := func(perSecond float64) uint64 { return uint64(age.Seconds() * perSecond) }
			d.Threads.Items = append(d.Threads.Items, sdk.ThreadDetail{
				TID: tid + i, StartTicks: 7, Run: time.Duration(counter(th.run * 1e9)), Wait: time.Duration(counter(th.wait * 1e9)),
				VoluntarySwitches: counter(th.sleeps), LastCPU: th.cpu, CPUsAllowed: th.allowed,
			})
		}
		return d
	}
	return p
}

// bound is one of two jobs of mpirun that are both bound to the first core.
func bound(allowed string) *tunlettest.Process {
	return program(100, thread{run: 0.5, wait: 0.5, allowed: allowed})
}

// talker is one of a pair over a pipe, of which each has one end.
func talker(tid int, writes bool, th thread) *tunlettest.Process {
	p := program(tid, th)
	p.Rates[sdk.ReadCalls], p.Rates[sdk.WriteCalls] = th.sleeps, th.sleeps
	p.Rates[sdk.CPUUser] = th.run * 1e8
	threads := p.Details
	p.Details = func(age time.Duration) *sdk.Details {
		d := threads(age)
		d.Pipes = &sdk.PipeDetails{Total: 1, Items: []sdk.PipeDetail{{FD: 5, Inode: 77, Writes: writes}}}
		return d
	}
	return p
}

// across is one of the measured pair: 25,000 round trips a second between two cores.
func across(cpu uint64) thread {
	return thread{run: 0.3, sleeps: 25_000, cpu: cpu, allowed: "0-1"}
}

// values are the changes of the only proposal, as KNOB=VALUE.
func values(t *testing.T, h *tunlettest.Harness) (out []string) {
	t.Helper()
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	for _, c := range h.Proposals[0].GetChanges() {
		out = append(out, c.GetKnob()+"="+c.GetAction().GetSystem().GetValue().GetText())
	}
	return out
}

func mustBe(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("changes %v, want %v", got, want)
	}
}

func TestBoundToTheSameCPU(t *testing.T) {
	h := tunlettest.Start(t, affinity.New, nil, bound("0"), bound("0"))
	h.Run(3 * time.Second)
	mustBe(t, values(t, h), []string{"thread.affinity=0-1", "thread.affinity=0-1"})
	if g := h.Proposals[0].GetPredictedGain(); g < 1.9 || g > 2.1 {
		t.Errorf("predicted gain %v, want 2", g)
	}
}

// Threads of one process that are bound one by one.
func TestBoundThreads(t *testing.T) {
	h := tunlettest.Start(t, affinity.New, nil, program(100, thread{run: 0.5, wait: 0.5, allowed: "0"}, thread{run: 0.5, wait: 0.5, allowed: "0"}, thread{allowed: "1"}))
	h.Run(3 * time.Second)
	mustBe(t, values(t, h), []string{"thread.affinity=0-1"})
}

// What reads and writes all the time is judged by that, others by their CPU time.
func TestObjective(t *testing.T) {
	for _, tt := range []struct {
		calls float64
		scope string
		value float64
	}{{5_000, "node/node1", 5_000}, {20, "cpu-time/node1", 0.5}} {
		p := bound("0")
		p.Rates[sdk.ReadCalls], p.Rates[sdk.WriteCalls] = tt.calls/2, tt.calls/2
		h := tunlettest.Start(t, affinity.New, nil, p)
		h.Run(2 * time.Second)
		values(t, h)
		last := h.Objectives[len(h.Objectives)-1]
		if got := h.Proposals[0].GetScope(); got != tt.scope || last.GetScope() != tt.scope || math.Abs(last.GetValue()-tt.value) > tt.value/100 {
			t.Errorf("%v calls/s: judged by %q, %v, want %q and %v", tt.calls, got, last, tt.scope, tt.value)
		}
	}
}

// One that does so now and then is not judged by what it does at the time.
func TestUnsteadyCalls(t *testing.T) {
	p := bound("0")
	p.Rates[sdk.ReadCalls], p.Rates[sdk.WriteCalls] = 5_000, 0
	h := tunlettest.Start(t, affinity.New, nil, p)
	for i := range 60 {
		p.Rates[sdk.ReadCalls] = float64(i / 3 % 2 * 10_000)
		h.Round()
	}
	values(t, h)
	if got := h.Proposals[0].GetScope(); got != "cpu-time/node1" {
		t.Errorf("judged by %q", got)
	}
}

// A set of several CPUs that a program was given is only widened where its calls tell
// whether that is of use: threads that spin take all the CPU time that there is.
func TestBoundToSeveralCPUs(t *testing.T) {
	for _, tt := range []struct {
		name     string
		calls    func(round int) float64
		proposes bool
	}{
		{"calls tell", func(int) float64 { return 5_000 }, true},
		{"no calls", func(int) float64 { return 0 }, false},
		{"calls now and then", func(round int) float64 { return float64(round / 3 % 2 * 10_000) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := thread{run: 0.5, wait: 0.5, allowed: "0-1"}
			p := program(1, th, th, th, th)
			p.UsableCPUs, p.Gauges[sdk.BoundThreads] = "0-3", 4
			p.Rates[sdk.WriteCalls] = 0
			h := tunlettest.Start(t, affinity.New, nil, p)
			for i := range 200 {
				p.Rates[sdk.ReadCalls] = tt.calls(i)
				h.Round()
			}
			if got := len(h.Proposals) > 0; got != tt.proposes {
				t.Errorf("proposals %v, want one: %v", h.Proposals, tt.proposes)
			}
		})
	}
}

// A stranger has the CPU that a program is bound to.
func TestNoiseFromOutside(t *testing.T) {
	h := tunlettest.Start(t, affinity.New, nil, bound("0"))
	h.Run(3 * time.Second)
	mustBe(t, values(t, h), []string{"thread.affinity=0-1"})
}

func TestPairAcrossCPUs(t *testing.T) {
	h := tunlettest.Start(t, affinity.New, nil, talker(200, true, across(1)), talker(300, false, across(0)))
	h.Run(3 * time.Second)
	mustBe(t, values(t, h), []string{"thread.affinity@200=1", "thread.affinity@300=1"})
	if g := h.Proposals[0].GetPredictedGain(); g < 4 || g > 8 {
		t.Errorf("predicted gain %v, want about 5", g)
	}
}

// On a busy machine, a pair that is bound to two CPUs waits for each of them.
func TestPairBoundApart(t *testing.T) {
	h := tunlettest.Start(t, affinity.New, nil,
		talker(200, true, thread{run: 0.06, wait: 0.4, sleeps: 2_500, cpu: 0, allowed: "0"}),
		talker(300, false, thread{run: 0.08, wait: 0.4, sleeps: 2_500, cpu: 1, allowed: "1"}))
	h.Run(3 * time.Second)
	mustBe(t, values(t, h), []string{"thread.affinity@300=0"})
}

func TestSilent(t *testing.T) {
	unknown := bound("0")
	unknown.UsableCPUs = ""
	narrow := bound("0")
	narrow.UsableCPUs = "0"
	both := thread{run: 0.5, wait: 0.5, allowed: "0-1"}
	slow := across(1)
	slow.sleeps = 2_000
	busy := across(1)
	busy.run = 0.6
	for _, tt := range []struct {
		name     string
		programs []*tunlettest.Process
	}{
		{"not bound, on a busy machine", []*tunlettest.Process{program(1, both, both), program(11, both)}},
		{"bound, and alone there", []*tunlettest.Process{program(1, thread{run: 1, allowed: "0"}), program(2, thread{run: 1, cpu: 1, allowed: "1"})}},
		{"bound, and it sleeps", []*tunlettest.Process{program(1, thread{run: 0.05, wait: 0.01, sleeps: 50, allowed: "0"})}},
		{"attune itself is bound", []*tunlettest.Process{narrow}},
		{"usable CPUs not known", []*tunlettest.Process{unknown}},
		{"a pair that is together", []*tunlettest.Process{talker(1, true, across(1)), talker(2, false, across(1))}},
		{"a pair that does not sleep often", []*tunlettest.Process{talker(1, true, slow), talker(2, false, across(0))}},
		{"a pair that needs two CPUs", []*tunlettest.Process{talker(1, true, busy), talker(2, false, busy)}},
		{"two that have nothing to do with each other", []*tunlettest.Process{talker(1, true, across(1)), talker(2, true, across(0))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, affinity.New, nil, tt.programs...)
			h.Run(60 * time.Second)
			if len(h.Proposals) > 0 {
				t.Errorf("proposed %v", h.Proposals[0])
			}
		})
	}
}

// A pair whose CPU others want is set free, and so is one that has lost its other half.
func TestJoinedPairIsSetFree(t *testing.T) {
	for _, tt := range []struct {
		name   string
		happen func(h *tunlettest.Harness, a, b *tunlettest.Process)
	}{
		{"others have the CPU", func(_ *tunlettest.Harness, a, b *tunlettest.Process) {
			for _, p := range []*tunlettest.Process{a, b} {
				p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 0.1e9, 0.8e9
			}
		}},
		{"a compute phase in threads that have its CPU", func(_ *tunlettest.Harness, a, b *tunlettest.Process) {
			a.Rates[sdk.RunTime], a.Rates[sdk.RunqueueWait] = 1e9, 2e9
			b.Rates[sdk.RunTime], b.Rates[sdk.RunqueueWait] = 0, 0
		}},
		{"the other one ended", func(h *tunlettest.Harness, _, b *tunlettest.Process) { h.EndProcess(b) }},
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, tunlet started again %v", tt.name, again), func(t *testing.T) {
				wide := across(1)
				wide.allowed = "0-3"
				a, b := talker(200, true, wide), talker(300, false, across(0))
				a.UsableCPUs = sdk.CPUList(wide.allowed)
				h := tunlettest.Start(t, affinity.New, nil, a, b)
				h.Run(3 * time.Second)
				values(t, h)
				h.SetState(h.Proposals[0].GetId(), kept, "")
				for _, p := range []*tunlettest.Process{a, b} {
					p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 0.5e9, 0.4e9
				}
				h.Run(5 * time.Second)
				if again {
					startAgain(t, h, "0-3", "0-1")
					h.Run(5 * time.Second)
				}
				if len(h.Withdrawals) > 0 {
					t.Fatalf("withdrawn without reason: %v", h.Withdrawals)
				}
				tt.happen(h, a, b)
				h.Run(3 * time.Second)
				if len(h.Withdrawals) != 1 {
					t.Errorf("withdrawals %v, want one", h.Withdrawals)
				}
			})
		}
	}
}

// So is a pair that has lost it before the verdict.
func TestHalfEndsDuringTrial(t *testing.T) {
	b := talker(300, false, across(0))
	h := tunlettest.Start(t, affinity.New, nil, talker(200, true, across(1)), b)
	h.Run(3 * time.Second)
	values(t, h)
	h.EndProcess(b)
	h.SetState(h.Proposals[0].GetId(), kept, "")
	h.Run(3 * time.Second)
	if len(h.Withdrawals) != 1 || h.Withdrawals[0].GetProposalId() != h.Proposals[0].GetId() {
		t.Errorf("withdrawals %v, want that of the proposal", h.Withdrawals)
	}
}

// startAgain starts the tunlet again, which is told what its only proposal changed, and where
// the thread of each change could run before.
func startAgain(t *testing.T, h *tunlettest.Harness, before ...string) {
	t.Helper()
	proposal := h.Proposals[0].Proposal
	tunlettest.Restart(h)
	told := &attunev1.ProposalChangedRequest{ProposalId: proposal.GetId(), State: kept, Earlier: proposal}
	for i := range proposal.GetChanges() {
		told.Results = append(told.Results, &attunev1.ActionResult{
			Outcome:  attunev1.Outcome_OUTCOME_APPLIED,
			OldValue: &attunev1.Value{Kind: &attunev1.Value_Text{Text: before[i]}},
		})
	}
	ctx, cancel := h.Context()
	defer cancel()
	if _, err := h.Client.ProposalChanged(ctx, told); err != nil {
		t.Fatal(err)
	}
}

// One that its program had bound apart stays, whoever else has the CPU.
func TestPairThatWasBoundStays(t *testing.T) {
	a := talker(200, true, thread{run: 0.06, wait: 0.4, sleeps: 2_500, cpu: 0, allowed: "0"})
	b := talker(300, false, thread{run: 0.08, wait: 0.4, sleeps: 2_500, cpu: 1, allowed: "1"})
	h := tunlettest.Start(t, affinity.New, nil, a, b)
	h.Run(3 * time.Second)
	values(t, h)
	h.SetState(h.Proposals[0].GetId(), kept, "")
	h.Run(10 * time.Second)
	startAgain(t, h, "0", "1")
	h.Run(10 * time.Second)
	if len(h.Withdrawals) > 0 {
		t.Errorf("withdrawn: %v", h.Withdrawals)
	}
}

func TestGivesUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state attunev1.ProposalState
		want  int
	}{{"undone", undone, 3}, {"failed", failed, 1}, {"kept", kept, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, affinity.New, nil, bound("0"), bound("0"))
			for range 6 {
				h.Run(20 * time.Second)
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
	h := tunlettest.Start(t, affinity.New, nil)
	for n := 1; n <= 4; n++ {
		a, b := h.StartProcess(bound("0")), h.StartProcess(bound("0"))
		h.Run(3 * time.Second)
		if len(h.Proposals) != n {
			t.Fatalf("%d proposals in %d pairs of processes", len(h.Proposals), n)
		}
		h.EndProcess(a)
		h.EndProcess(b)
		h.SetState(h.Proposals[n-1].GetId(), undone, "the process ended before it could be judged")
	}
}
