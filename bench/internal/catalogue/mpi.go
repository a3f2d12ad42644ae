// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"os/exec"
	"runtime"
	"strconv"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

func needsOpenMPI() []Need { return []Need{{Command: mpirun(), Package: "openmpi-bin"}} }

// exchange is a small bulk-synchronous MPI program.
func exchange() Source { return Source{Name: "mpi_exchange", Compiler: "mpicc.openmpi"} }

// openMPI is mpirun for ranks on this machine. The host list claims a slot for
// every rank, as a host file that counts hardware threads, or was written for
// another machine, does: Open MPI then believes it and lets idle ranks spin. With
// --oversubscribe, or fewer slots than ranks, it would notice and let them yield.
func openMPI(ranks int, command ...string) []string {
	n := strconv.Itoa(ranks)
	return append([]string{mpirun(), "--allow-run-as-root", "--host", "localhost:" + n, "--bind-to", "none", "-np", n}, command...)
}

// mpirun is Open MPI's, also where MPICH is the default.
func mpirun() string {
	if _, err := exec.LookPath("mpirun.openmpi"); err == nil {
		return "mpirun.openmpi"
	}
	return "mpirun"
}

func needsMPICH() []Need { return []Need{{Command: "mpirun.mpich", Package: "mpich"}} }

// exchangeMPICH is a small bulk-synchronous MPI program.
func exchangeMPICH() Source {
	return Source{Name: "mpi_exchange", Compiler: "mpicc.mpich", As: "mpi_exchange_mpich"}
}

// mpich is mpirun for ranks on this machine.
func mpich(ranks int, command ...string) []string {
	return append([]string{"mpirun.mpich", "-n", strconv.Itoa(ranks)}, command...)
}

// mpichCases have twice as many ranks as cores. MPICH has no setting that helps
// them: the best is a wrapper that an expert preloads.
func mpichCases() []Case {
	ranks := 2 * runtime.NumCPU()
	return []Case{{
		Name: "mpi-progress/MPICH", Tunlet: "mpi-progress", Unit: "it/s", Format: measure.Native(),
		Needs: needsMPICH(),
		Sources: []Source{
			exchangeMPICH(),
			{Name: "mpich_yield", As: "mpich_yield.so", Flags: []string{"-shared", "-fPIC"}},
		},
		Command: mpich(ranks, "{bin}/mpi_exchange_mpich", "{seconds}"),
		Best:    Static{Command: mpich(ranks, "-genv", "LD_PRELOAD", "{bin}/mpich_yield.so", "{bin}/mpi_exchange_mpich", "{seconds}")},
	}}
}
