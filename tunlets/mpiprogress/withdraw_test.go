// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestWithdrawsWhenThereIsRoom(t *testing.T) {
	for _, tt := range []struct {
		name  string
		room  func(h *tunlettest.Harness, ranks []*tunlettest.Process)
		least time.Duration
		most  time.Duration
	}{
		{"ranks ended", func(h *tunlettest.Harness, ranks []*tunlettest.Process) {
			for _, p := range ranks[2:] {
				h.EndProcess(p)
			}
			for _, p := range ranks[:2] {
				p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e9, 0
			}
		}, time.Second, 2 * time.Second},
		{"CPU set widened", func(_ *tunlettest.Harness, ranks []*tunlettest.Process) {
			for _, p := range ranks {
				p.Gauges[sdk.CPUsAllowed] = 4
				p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e9, 0
			}
		}, time.Second, 2 * time.Second},
		{"half of the ranks sleep", func(_ *tunlettest.Harness, ranks []*tunlettest.Process) {
			for _, p := range ranks[2:] {
				p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e7, 0
			}
			for _, p := range ranks[:2] {
				p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e9, 0
			}
		}, 5 * time.Second, 6 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, ranks := tuned(t)
			began := h.Elapsed()
			tt.room(h, ranks)
			h.Run(10 * time.Second)
			if len(h.Withdrawals) != 1 || h.Withdrawals[0].GetProposalId() != h.Proposals[0].GetId() {
				t.Fatalf("withdrawals %v, want that of the proposal", h.Withdrawals)
			}
			if took := h.Withdrawals[0].At - began; took < tt.least || took > tt.most {
				t.Errorf("withdrawn after %v, want %v to %v", took, tt.least, tt.most)
			}
			if len(h.Proposals) != 1 {
				t.Errorf("proposed again while there was room: %v", h.Proposals[1:])
			}
		})
	}
}

// What was changed in ranks that have all ended is not taken back.
func TestEndedRanksAreForgotten(t *testing.T) {
	h, ranks := tuned(t)
	late := h.StartProcess(rank(4, 0.5))
	rest([]*tunlettest.Process{late})
	for _, p := range ranks {
		h.EndProcess(p)
	}
	h.Run(10 * time.Second)
	if len(h.Withdrawals) > 0 {
		t.Errorf("withdrawn: %v", h.Withdrawals)
	}
}

func TestShortRoomIsNoReason(t *testing.T) {
	h, ranks := tuned(t)
	for range 10 {
		for _, run := range []float64{0.01, 0.5} { // writes a file for half a second, works on
			for _, p := range ranks {
				p.Rates[sdk.RunTime] = run * 1e9
				p.Rates[sdk.RunqueueWait] = run * 1e9
			}
			h.Run(500 * time.Millisecond)
		}
	}
	if len(h.Withdrawals) > 0 {
		t.Errorf("withdrawn: %v", h.Withdrawals[0])
	}
}

func TestDoesNotFlap(t *testing.T) {
	h, ranks := tuned(t)
	for range 20 { // at the edge: room and no room in turn
		for _, cpus := range []float64{4, 2} {
			for _, p := range ranks {
				p.Gauges[sdk.CPUsAllowed] = cpus
				spin(p, cpus/4)
			}
			h.Run(2 * time.Second)
			for _, p := range h.Proposals {
				h.SetState(p.GetId(), kept, "")
			}
		}
	}
	if n := len(h.Proposals); n < 2 || n > 4 {
		t.Errorf("%d proposals in 80 s at the edge, want a second try and few more", n)
	}
}

func TestGivesUpAfterFailures(t *testing.T) {
	h := start(t)
	startRanks(h, 4, 0.5)
	for range 4 {
		h.Run(13 * time.Second)
		for _, p := range h.Proposals {
			h.SetState(p.GetId(), undone, "no gain")
		}
	}
	if len(h.Proposals) != 3 {
		t.Errorf("%d proposals, want 3", len(h.Proposals))
	}
}
