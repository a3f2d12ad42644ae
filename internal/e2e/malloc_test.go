// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

func TestMallocStormIsTuned(t *testing.T) {
	storm := targets.Build(t, workloads+"malloc_storm.c")
	seconds := "6"
	if testing.Short() { // an emulated processor: few iterations a second to judge by
		seconds = "20"
	}
	mustBeTuned(t, func() string {
		before := rate(t, run(t, storm, "2"))
		stdout, r := runTuned(t, nil, storm, seconds)
		return unlessGained(r, "malloc", 1, before, rate(t, stdout), leastGain)
	})
}
