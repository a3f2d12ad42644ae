// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"os/exec"
	"strconv"
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
