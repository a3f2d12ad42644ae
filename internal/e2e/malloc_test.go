// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

func TestMallocStormIsTuned(t *testing.T) {
	storm := targets.Build(t, workloads+"malloc_storm.c")
	before := rate(t, run(t, storm, "2"))
	seconds := "6"
	if testing.Short() { // an emulated processor: few iterations a second to judge by
		seconds = "20"
	}
	stdout, r := runTuned(t, nil, storm, seconds)
	after := rate(t, stdout)
	if keptIn(r, "malloc") != 1 || after < leastGain*before {
		t.Errorf("%.0f it/s without, %.0f with attune, want %d times more; changes %+v", before, after, leastGain, r.Changes)
	}
}
