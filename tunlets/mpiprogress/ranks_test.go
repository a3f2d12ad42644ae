// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import (
	"path"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/mpiprogress"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

const (
	applied = attunev1.ProposalState_PROPOSAL_STATE_APPLIED
	kept    = attunev1.ProposalState_PROPOSAL_STATE_KEPT
	undone  = attunev1.ProposalState_PROPOSAL_STATE_UNDONE
)

func openMPI() []string {
	return []string{"/usr/lib/libc.so.6", "/usr/lib/libmpi.so.40", "/usr/lib/libopen-rte.so.40", "/usr/lib/libopen-pal.so.40"}
}

// rank makes a rank that shares CPUs with others: it gets `run` of them and
// waits for the rest of the time, never sleeping.
func rank(number int32, run float64) *tunlettest.Process {
	p := &tunlettest.Process{
		Rank: proto.Int32(number), Objects: openMPI(), CPUs: 2,
		Rates:  map[sdk.Signal]float64{sdk.MinorFaults: 10},
		Gauges: map[sdk.Signal]float64{sdk.ResidentBytes: 5e7, sdk.Threads: 3, sdk.CPUsAllowed: 2},
		Hits:   calls("MPI_Allreduce", 140),
	}
	spin(p, run)
	return p
}

// spin sets what a spinning rank shows: a switch every 4 ms on its CPU.
func spin(p *tunlettest.Process, run float64) {
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = run*1e9, (1-run)*1e9
	p.Rates[sdk.CPUUser] = run * 1e9
	p.Rates[sdk.VoluntarySwitches], p.Rates[sdk.InvoluntarySwitches] = 2, run*250
}

// calls makes the points that cover a function count it.
func calls(function string, perSecond float64) func(*attunev1.MeasurePoint) (float64, uint64) {
	return func(p *attunev1.MeasurePoint) (float64, uint64) {
		for _, pattern := range p.GetFunction().GetSymbols() {
			if ok, _ := path.Match(pattern, function); ok {
				return perSecond, 0
			}
		}
		return 0, 0
	}
}

func start(t *testing.T) *tunlettest.Harness {
	t.Helper()
	h := tunlettest.New(t, mpiprogress.New)
	h.Mechanism = "got"
	h.StartSession()
	return h
}

func startRanks(h *tunlettest.Harness, n int, run float64) (ranks []*tunlettest.Process) {
	for i := range n {
		ranks = append(ranks, h.StartProcess(rank(int32(i), run)))
	}
	return ranks
}

func startRanksOf(n int, objects []string) (out []*tunlettest.Process) {
	for i := range n {
		p := rank(int32(i), 0.5)
		p.Objects = objects
		out = append(out, p)
	}
	return out
}

// tuned is a run with four ranks whose change was kept.
func tuned(t *testing.T) (*tunlettest.Harness, []*tunlettest.Process) {
	t.Helper()
	h := start(t)
	ranks := startRanks(h, 4, 0.5)
	h.Run(500 * time.Millisecond)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	h.SetState(h.Proposals[0].GetId(), applied, "")
	for _, p := range ranks {
		p.Rates[sdk.InvoluntarySwitches] = 50_000
		p.Hits = calls("MPI_Allreduce", 11_800)
	}
	h.Run(500 * time.Millisecond)
	h.SetState(h.Proposals[0].GetId(), kept, "")
	h.Run(5 * time.Second)
	if len(h.Withdrawals) > 0 || len(h.Proposals) != 1 {
		t.Fatalf("withdrawals %v, proposals %v while nothing changed", h.Withdrawals, h.Proposals)
	}
	return h, ranks
}
