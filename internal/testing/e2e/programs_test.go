// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm || site

package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

const workloads = "../../../bench/workloads/"

// mapped has the C library map each of the storm's blocks by itself. On the heap, which shrinks
// from its top only, a block that remains above all others keeps their memory in the process: one
// that DMLib's entry leaves there leaves nothing to tune.
const mapped = "MALLOC_MMAP_THRESHOLD_=131072"

// faults makes the C library give memory back and fetch it again, all the time, and writes how many
// page faults each piece of work takes to a file: however busy the machine is, the change that the
// malloc tunlet makes has them go.
const faults = `
import resource, sys, time
end, log, before = time.monotonic() + float(sys.argv[1]), open(sys.argv[2], "w", buffering=1), 0
while time.monotonic() < end:
    for _ in range(5):
        blocks = [bytearray(1_000_000) for _ in range(4)]
        del blocks
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    print("faults", faults - before + 100, file=log)
    before = faults
`

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

func buildMPI(t *testing.T) string {
	t.Helper()
	return buildMPIWith(t, "openmpi")
}

// buildMPIWith builds the MPI workload with openmpi or mpich.
func buildMPIWith(t *testing.T, library string) string {
	t.Helper()
	compiler := targets.NeedCommand(t, "mpicc."+library, "lib"+library+"-dev")
	return targets.BuildWith(t, compiler, "mpi_exchange", workloads+"mpi_exchange.c")
}
