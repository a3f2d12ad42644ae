// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// threads is a command with a number of OpenMP threads for each CPU.
func threads(perCPU int, command ...string) []string {
	return append([]string{"env", fmt.Sprintf("OMP_NUM_THREADS=%d", perCPU*runtime.NumCPU())}, command...)
}

// openMPCases have four times as many threads as CPUs, as a job script has that
// was written for another machine, or teams that share the CPUs.
func openMPCases() []Case {
	regions := []string{"{bin}/omp_regions", "{seconds}"}
	numpy := []string{
		"LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp", workload.DebianPython, "{src}/numpy_matmul.py", "{seconds}",
	}
	llvm := []Source{{Name: "omp_regions", As: "omp_regions_llvm", Compiler: "clang-14", Flags: []string{"-fopenmp"}}}
	native := measure.Native()
	// Two teams, each with a thread for each CPU; one's speed counts.
	pair := []string{"sh", "-c", "{bin}/omp_regions {seconds} 200000 > /dev/null & {bin}/omp_regions {seconds} 200000; wait"}
	return []Case{
		{
			Name: "omp-threads/C", Tunlet: "omp-threads", Unit: "regions/s", Format: native,
			Sources: []Source{{Name: "omp_regions", Flags: []string{"-fopenmp"}}},
			Command: threads(4, regions...), Best: Static{Command: threads(1, regions...)},
		},
		{
			Name: "omp-threads/C, longer regions", Tunlet: "omp-threads", Unit: "regions/s", Format: native,
			Sources: []Source{{Name: "omp_regions", Flags: []string{"-fopenmp"}}},
			Command: threads(4, append(slices.Clone(regions), "200000")...),
			Best:    Static{Command: threads(1, append(slices.Clone(regions), "200000")...)},
		},
		{
			Name: "omp-threads/C, LLVM's run-time", Tunlet: "omp-threads", Unit: "regions/s", Format: native,
			Sources: llvm,
			Command: threads(4, "{bin}/omp_regions_llvm", "{seconds}"),
			Best:    Static{Command: threads(1, "{bin}/omp_regions_llvm", "{seconds}")},
		},
		{
			Name: "omp-threads/numpy with OpenBLAS", Tunlet: "omp-threads", Debian: true, Unit: "it/s", Format: native,
			Needs:   []Need{{Module: "numpy", Package: "python3-numpy"}, {File: "/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3", Package: "libopenblas0-openmp"}},
			Command: threads(4, numpy...), Best: Static{Command: threads(1, numpy...)},
		},
		{
			Name: "omp-spin/two teams in C", Tunlet: "omp-spin", Unit: "regions/s", Format: native,
			Sources: []Source{{Name: "omp_regions", Flags: []string{"-fopenmp"}}},
			Command: threads(1, pair...),
			Best:    Static{Command: threads(1, append([]string{"env", "GOMP_SPINCOUNT=0"}, pair...)...)},
		},
	}
}
