// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"runtime"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// bestMalloc keeps all memory that was once given: what mallopt would set.
// 32 MB is the largest threshold that glibc takes.
var bestMalloc = Static{Environment: []string{"GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432" +
	":glibc.malloc.trim_threshold=1073741824:glibc.malloc.top_pad=67108864"}}

func mallocCases() []Case {
	return []Case{
		{
			Name: "malloc/C", Tunlet: "malloc", Unit: "it/s", Format: measure.Native(),
			Sources: []Source{{Name: "malloc_storm"}},
			Command: []string{"{bin}/malloc_storm", "{seconds}"},
			Best:    bestMalloc,
		},
		{
			Name: "malloc/numpy", Tunlet: "malloc", Debian: true, Unit: "it/s", Format: measure.Native(),
			Needs:   []Need{{Module: "numpy", Package: "python3-numpy"}},
			Command: []string{workload.DebianPython, "{src}/numpy_storm.py", "{seconds}"},
			Best:    bestMalloc,
		},
	}
}

// mpiProgressCases have twice as many ranks as cores.
func mpiProgressCases() []Case {
	ranks := 2 * runtime.NumCPU()
	best := Static{Environment: []string{"OMPI_MCA_mpi_yield_when_idle=1"}}
	return []Case{
		{
			Name: "mpi-progress/C", Tunlet: "mpi-progress", Unit: "it/s", Format: measure.Native(),
			Needs:   needsOpenMPI(),
			Sources: []Source{exchange()},
			Command: openMPI(ranks, "{bin}/mpi_exchange", "{seconds}"),
			Best:    best,
		},
		{
			Name: "mpi-progress/LAMMPS", Tunlet: "mpi-progress", Debian: true, Unit: "steps/s", Format: measure.LAMMPS(),
			Needs:   append(needsOpenMPI(), Need{Command: "lmp", Package: "lammps"}),
			Command: openMPI(ranks, "lmp", "-in", "{src}/in.melt", "-log", "none", "-var", "seconds", "{seconds}"),
			Best:    best,
		},
	}
}

func pipeCases() []Case {
	return []Case{{
		Name: "pipe/C", Tunlet: "pipe", Unit: "MB/s", Format: measure.Native(),
		Sources: []Source{{Name: "pipe_stream"}},
		Command: []string{"{bin}/pipe_stream", "{seconds}"},
		Best:    Static{Command: []string{"{bin}/pipe_stream", "{seconds}", "1048576"}},
	}}
}
