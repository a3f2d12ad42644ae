// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"fmt"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// communication lists the functions whose calls are counted: those that move
// data between ranks or wait for it. Left out on purpose are clocks and local
// questions (MPI_Wtime, MPI_Comm_rank), which say nothing about progress, and
// polls (MPI_Test*, MPI_Iprobe, MPI_Improbe), which a rank makes more often the
// less there is to do. MPI_Win_test is one that gets in with the others of its kind:
// hardly any program calls it. The leading * lets PMPI_ names in, by which Open MPI's
// Fortran bindings call; a C program calls one of the two names, never both.
func communication() []string {
	return []string{
		"*MPI_*[Ss]end*", "*MPI_Recv", "*MPI_[IM]recv", "*MPI_[PM]*robe", "*MPI_Start*", "*MPI_Wait*",
		"*MPI_*[Bb]arrier", "*MPI_*[Bb]cast", "*MPI_*[Gg]ather*", "*MPI_Scatter*", "*MPI_*lltoall*",
		"*MPI_*[Rr]educe*", "*MPI_*[Ss]can", "*MPI_Win_*",
	}
}

// point is the measure point for one rank, in the library of the given pattern.
func point(p sdk.Handle, object string) sdk.Point {
	return sdk.Point{
		ID: pointID(p), Object: object, Symbols: communication(), DynamicCallsOnly: true,
		Place: sdk.Entry, Delivery: sdk.DeliverAggregate, Processes: []sdk.Handle{p},
	}
}

func pointID(p sdk.Handle) string { return fmt.Sprintf("mpi@%d", p) }
