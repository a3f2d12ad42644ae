// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

const workloads = "../../bench/workloads/"

// rate reads what a workload printed about itself.
func rate(t *testing.T, stdout string) float64 {
	t.Helper()
	for line := range strings.Lines(stdout) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "total" {
			continue
		}
		seconds, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		count, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		return count / seconds
	}
	t.Fatalf("no total in:\n%s", stdout)
	return 0
}

// leastGain is far below what the benchmarks show, and far above noise.
const leastGain = 2

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
