// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

func TestOpenMPThreadsAreTuned(t *testing.T) {
	t.Setenv("OMP_NUM_THREADS", strconv.Itoa(4*runtime.NumCPU()))
	regions := targets.Build(t, workloads+"omp_regions.c", "-O2", "-fopenmp")
	mustBeTuned(t, func() string {
		before := rate(t, run(t, regions, "2"))
		stdout, r := runTuned(t, nil, regions, "8")
		return unlessGained(r, "omp-threads", 1, before, rate(t, stdout), leastGain)
	})
}

// Two teams that spin against each other sleep; they share the CPUs with this
// test, so their speed is compared in the report only.
func TestOpenMPTeamsSleep(t *testing.T) {
	t.Setenv("OMP_NUM_THREADS", strconv.Itoa(runtime.NumCPU()))
	regions := targets.Build(t, workloads+"omp_regions.c", "-O2", "-fopenmp")
	mustBeTuned(t, func() string {
		_, r := runTuned(t, nil, "sh", "-c", regions+" 45 200000 >/dev/null & "+regions+" 45 200000; wait")
		return unlessGained(r, "omp-spin", 2, 0, 0, 0)
	})
}
