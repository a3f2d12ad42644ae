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
	program := buildMPI(t)
	ranks := 2 * runtime.NumCPU()
	n := strconv.Itoa(ranks)
	// Claims a slot per rank, so that Open MPI does not notice.
	mpirun := []string{"mpirun.openmpi", "--allow-run-as-root", "--host", "localhost:" + n, "--bind-to", "none", "-np", n, program}
	before := rate(t, run(t, append(mpirun, "2")...))
	stdout, r := runTuned(t, nil, append(mpirun, "6")...)
	after := rate(t, stdout)
	if got := keptIn(r, "mpi-progress"); got != ranks || after < leastGain*before {
		t.Errorf("kept in %d processes, want %d; %.0f it/s without, %.0f with attune, want %d times more; changes %+v",
			got, ranks, before, after, leastGain, r.Changes)
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
