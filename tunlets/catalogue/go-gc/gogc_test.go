// SPDX-License-Identifier: Apache-2.0

package gogc_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/catalogue"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	tunlettest.Suite(t, catalogue.New("go-gc"), func() *tunlettest.Process { return marking(30*time.Millisecond, 1e9, 16<<30) })
}

// marking is a Go program that marks so long in each round of 50 ms, moves so many
// bytes a second, holds 100 MiB, and could take so much more.
func marking(took time.Duration, moved float64, available uint64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Executable = "/usr/bin/served"
	p.Objects = []string{"/usr/bin/served", "linked:go"}
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1.5e9, 0
	p.Rates[sdk.ReadBytes], p.Rates[sdk.WrittenBytes] = 0, moved
	p.Details = func(time.Duration) *sdk.Details {
		return &sdk.Details{Memory: &sdk.MemoryDetails{ResidentBytes: 100 << 20, AvailableBytes: available}}
	}
	p.Records = func(now int64) (hits []tunlettest.Hit) {
		const workers = 2
		for i := range workers {
			each := took.Nanoseconds() / workers
			thread := int32(i + 1)
			hits = append(hits,
				tunlettest.Hit{Point: fmt.Sprintf("marking@%d", p.Handle), Thread: thread, Monotonic: now},
				tunlettest.Hit{Point: fmt.Sprintf("marking.until@%d", p.Handle), Thread: thread, Monotonic: now + each})
		}
		return hits
	}
	return p
}

func TestProposes(t *testing.T) {
	for _, tt := range []struct {
		name      string
		took      time.Duration // marking in a round of 50 ms
		moved     float64       // B/s
		available uint64
		percent   float64 // 0: none is proposed
		gain      float64
	}{
		{"half of the time", 37500 * time.Microsecond, 1e6, 16 << 30, 400, 1.6},
		{"a fifth of the time", 15 * time.Millisecond, 1e6, 16 << 30, 400, 1.18},
		{"little of the time", 8 * time.Millisecond, 1e6, 16 << 30, 0, 0},
		{"memory for some more", 37500 * time.Microsecond, 1e6, 300 << 20, 250, 1.43},
		{"no memory to spare", 37500 * time.Microsecond, 1e6, 150 << 20, 0, 0},
		{"available memory is not known", 37500 * time.Microsecond, 1e6, 0, 0, 0},
		{"nothing tells how far it gets", 37500 * time.Microsecond, 0, 16 << 30, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, catalogue.New("go-gc"), nil, marking(tt.took, tt.moved, tt.available))
			h.Run(4 * time.Second)
			if (len(h.Proposals) == 1) != (tt.percent > 0) {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.percent > 0)
			}
			if tt.percent > 0 {
				checkProposal(t, h.Proposals[0], tt.percent, tt.gain)
			}
		})
	}
}

// On a crowded machine a program gets little of the CPU time that it could use.
func TestCrowdedMachine(t *testing.T) {
	h := tunlettest.Start(t, catalogue.New("go-gc"), nil)
	p := marking(10*time.Millisecond, 1e5, 16<<30)
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 2e8, 8e8
	h.StartProcess(p)
	h.Run(4 * time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	checkProposal(t, h.Proposals[0], 400, 1.18)
}

// What there is room for is no whole number, as a rule; GOGC is one.
func TestWholeNumbers(t *testing.T) {
	h := tunlettest.Start(t, catalogue.New("go-gc"), nil, marking(37500*time.Microsecond, 1e6, 333<<20))
	h.Run(4 * time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	checkProposal(t, h.Proposals[0], 266, 1.45)
}

// Programs beside one another share what is available, also those that were changed
// before; one on another node has its own.
func TestProgramsShareMemory(t *testing.T) {
	h := tunlettest.Start(t, catalogue.New("go-gc"), nil)
	start := func(host string) {
		p := marking(37500*time.Microsecond, 1e6, 600<<20)
		p.Host = host
		h.StartProcess(p)
		h.Run(4 * time.Second)
		h.SetState(h.Proposals[len(h.Proposals)-1].GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	}
	for _, host := range []string{"node1", "node2", "node1"} {
		start(host)
	}
	if len(h.Proposals) != 3 {
		t.Fatalf("proposals %v, want three", h.Proposals)
	}
	for i, want := range []uint64{400, 400, 250} {
		if got := h.Proposals[i].GetChanges()[0].GetAction().GetSetting().GetValue().GetUnsigned(); got != want {
			t.Errorf("program %d: %d %%, want %d", i+1, got, want)
		}
	}
	h.StartProcess(marking(37500*time.Microsecond, 1e6, 600<<20)) // its part is no more than twice what it holds
	h.Run(4 * time.Second)
	if len(h.Proposals) > 3 {
		t.Errorf("proposed %v without memory to spare", h.Proposals[3])
	}
}

func checkProposal(t *testing.T, p tunlettest.Proposed, percent, gain float64) {
	t.Helper()
	c := p.GetChanges()[0]
	if len(p.GetChanges()) != 1 || c.GetKnob() != "go.gc.percent" || c.GetAction().GetSetting().GetValue().GetUnsigned() != uint64(percent) {
		t.Errorf("changes %v, want go.gc.percent = %.0f", p.GetChanges(), percent)
	}
	if g := p.GetPredictedGain(); g < gain*0.95 || g > gain*1.05 {
		t.Errorf("predicted gain %.2f, want %.2f", g, gain)
	}
}

// Programs without the run-time of Go are not looked at.
func TestOtherPrograms(t *testing.T) {
	h := tunlettest.New(t, catalogue.New("go-gc"))
	h.Refuse = func(*attunev1.MeasurePoint, *tunlettest.Process) string { return "there is no such function" }
	h.StartSession()
	p := marking(30*time.Millisecond, 1e6, 16<<30)
	p.Objects = []string{"/usr/bin/served", "/usr/lib/x86_64-linux-gnu/libc.so.6"}
	h.StartProcess(p)
	h.Run(4 * time.Second)
	if len(h.Proposals) != 0 || len(h.Remarks) != 0 || len(h.Points()) != 0 {
		t.Errorf("proposals %v, remarks %v, points %v; want nothing", h.Proposals, h.Remarks, h.Points())
	}
}
