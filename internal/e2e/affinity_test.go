// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

// Two processes that are bound to one CPU get all that there are. What that brings
// depends on what else the machine does; bench/catalogue measures it.
func TestBoundProcessesAreSpread(t *testing.T) {
	mustHaveTwoCPUs(t)
	program := targets.Build(t, workloads+"bound_exchange.c", "-O2")
	mustBeTuned(t, func() string {
		_, r := runTuned(t, []string{"--tunlet", "affinity"}, program, "15")
		processes := map[int]bool{}
		for _, c := range r.Changes {
			if c.Knob == "thread.affinity" && c.AppliedAt != nil && c.Old.String() != c.New.String() {
				processes[c.Process] = true
			}
		}
		if len(processes) != 2 {
			return fmt.Sprintf("changes %+v, want the affinity of two processes", r.Changes)
		}
		return ""
	})
}

// Two that are bound to different CPUs and talk through pipes are put on one, where
// that makes them faster: it depends on how a machine's CPUs wake each other.
func TestPairIsJoined(t *testing.T) {
	mustHaveTwoCPUs(t)
	program := targets.Build(t, workloads+"ping_pong.c", "-O2")
	mustBeTuned(t, func() string {
		apart, together := rate(t, run(t, program, "3", "apart")), rate(t, run(t, program, "3", "together"))
		stdout, r := runTuned(t, nil, program, "20", "apart")
		pays := together > leastGain*apart
		want := 0.8 * apart
		if pays {
			want = max(leastGain*apart, together/2)
		}
		if after := rate(t, stdout); pays && keptIn(r, "affinity") == 0 || after < want {
			return fmt.Sprintf("%.0f round trips/s apart, %.0f together, %.0f with attune, want %.0f; changes %+v", apart, together, after, want, r.Changes)
		}
		return ""
	})
}

func mustHaveTwoCPUs(t *testing.T) {
	t.Helper()
	if runtime.NumCPU() < 2 {
		t.Skip("with one CPU nothing can be bound wrongly")
	}
}
