// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"strings"
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

// TestBriefProgramThatLives: a program that has been brief a hundred times is started
// without DMLib; when it lives for once, DMLib comes to it, and it is tuned.
func TestBriefProgramThatLives(t *testing.T) {
	storm := targets.Build(t, workloads+"malloc_storm.c")
	const script = `i=0; while [ $i -lt 100 ]; do "$0" 0; sleep 0.01; i=$((i + 1)); done
"$0" $1 & sleep 1; echo "inherits $(tr '\0' '\n' </proc/$!/environ | grep -c -e ATTUNE_SOCKET -e LD_PRELOAD)"; wait`
	seconds := "6"
	if testing.Short() { // an emulated processor: few iterations a second to judge by
		seconds = "20"
	}
	mustBeTuned(t, func() string {
		before := rate(t, run(t, storm, "2"))
		stdout, r := runTuned(t, nil, "sh", "-c", script, storm, seconds)
		if !strings.Contains(stdout, "inherits 0\n") {
			t.Errorf("a brief program was started with DMLib in its environment:\n%s", stdout)
		}
		return unlessGained(r, "malloc", 1, before, rate(t, stdout), leastGain)
	})
}
