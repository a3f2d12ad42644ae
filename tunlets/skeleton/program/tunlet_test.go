// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// writer is a simulated process.
func writer(calls, bytes float64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Rates[sdk.WriteCalls], p.Rates[sdk.WrittenBytes] = calls, bytes
	p.Rates[sdk.CPUUser], p.Rates[sdk.CPUSystem] = 3e8, 6e8
	return p
}

// TestSuite is what every tunlet must pass.
func TestSuite(t *testing.T) {
	tunlettest.Suite(t, newTunlet, func() *tunlettest.Process { return writer(1e6, 35e6) })
}

func TestProposes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		process *tunlettest.Process
		want    int
	}{
		{"small writes", writer(1e6, 35e6), 1},
		{"large writes", writer(30_000, 30_000*4096), 0},
		{"few writes", writer(100, 3500), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, newTunlet, map[string]string{"batch": "64"}, tt.process)
			h.Run(5 * time.Second)
			if len(h.Proposals) != tt.want {
				t.Fatalf("proposals %v, want %d", h.Proposals, tt.want)
			}
		})
	}
}

// What was undone is tried again, after a while and three times at most.
func TestTries(t *testing.T) {
	h := tunlettest.Start(t, newTunlet, map[string]string{"batch": "64"}, writer(1e6, 35e6))
	for range 2000 {
		h.Round()
		if n := len(h.Proposals); n > 0 {
			h.SetState(h.Proposals[n-1].GetId(), attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "slower")
		}
	}
	if len(h.Proposals) != maxTries {
		t.Errorf("%d proposals, want %d", len(h.Proposals), maxTries)
	}
}
