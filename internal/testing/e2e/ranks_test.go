// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// crowd is how many ranks make the CPUs of this machine wait for each other.
func crowd() int { return 2 * runtime.NumCPU() }

// crowded starts that many ranks with openmpi or mpich. The former is told of a slot
// for each rank, so that it does not notice.
func crowded(library string, command ...string) []string {
	launcher := targets.MPICH(crowd())
	if library == "openmpi" {
		n := strconv.Itoa(crowd())
		launcher = []string{"mpirun.openmpi", "--allow-run-as-root", "--host", "localhost:" + n, "--bind-to", "none", "-np", n}
	}
	return append(launcher, command...)
}

func TestRanksAreTuned(t *testing.T) { ranksAreTuned(t, "openmpi") }

// ranksAreTuned runs ranks with openmpi or mpich until all of them are tuned.
func ranksAreTuned(t *testing.T, library string) {
	t.Helper()
	ranks := crowded(library, buildMPIWith(t, library), lasting)
	awaitRanks(t, kept("mpi-progress", crowd()), func() *program {
		p, _ := startTuned(t, nil, ranks...)
		return p
	})
}
