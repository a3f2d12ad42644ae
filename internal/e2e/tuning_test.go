// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

func TestMPIRanksAreTuned(t *testing.T) {
	ranks := 2 * runtime.NumCPU()
	n := strconv.Itoa(ranks)
	for library, mpirun := range map[string][]string{
		// Claims a slot per rank, so that Open MPI does not notice.
		"openmpi": {"mpirun.openmpi", "--allow-run-as-root", "--host", "localhost:" + n, "--bind-to", "none", "-np", n},
		"mpich":   {"mpirun.mpich", "-n", n},
	} {
		t.Run(library, func(t *testing.T) {
			mpirun := append(mpirun, buildMPIWith(t, library))
			mustBeTuned(t, func() string {
				before := rate(t, run(t, append(mpirun, "2")...))
				stdout, r := runTuned(t, nil, append(mpirun, "15")...)
				return unlessGained(r, "mpi-progress", ranks, before, rate(t, stdout), leastGain)
			})
		})
	}
}

func TestMessagesAreJoined(t *testing.T) {
	sender := targets.Build(t, workloads+"item_sender.c")
	mustBeTuned(t, func() string {
		_, r := runTuned(t, []string{"--tunlet-option", "aggregation.variable=items_per_message"}, sender, "10")
		return unlessGained(r, "aggregation", 1, 0, 0, 0)
	})
	if _, r := runTuned(t, nil, sender, "2"); keptIn(r, "aggregation") != 0 {
		t.Errorf("changes %+v without a name", r.Changes)
	}
}

func TestAdviceChangesNothing(t *testing.T) {
	storm := targets.Build(t, workloads+"malloc_storm.c")
	_, r := runTuned(t, []string{"--mode", "advise"}, storm, "3")
	if len(r.Changes) != 0 || len(r.Advice) == 0 {
		t.Errorf("%d changes and %d recommendations, want none and some", len(r.Changes), len(r.Advice))
	}
}

func TestSilentWithoutTheProblem(t *testing.T) {
	threads := targets.Build(t, workloads+"control_threads.c")
	_, r := runTuned(t, nil, threads, "1000")
	if len(r.Changes) != 0 || len(r.Advice) != 0 {
		t.Errorf("changes %+v, advice %+v; want none", r.Changes, r.Advice)
	}
}
