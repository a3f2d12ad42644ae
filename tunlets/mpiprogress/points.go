// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"fmt"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// communication lists the functions whose calls are counted: those that move
// data between ranks or wait for it. Left out on purpose are clocks and local
// questions (MPI_Wtime, MPI_Comm_rank), which say nothing about progress, and
// polls (MPI_Test*, MPI_Iprobe, MPI_Improbe), which a rank makes more often
// the less there is to do. A leading * lets PMPI_ names in, by which Open MPI's
// Fortran bindings call; a C program calls one of the two names, never both.
func communication() []string {
	return []string{
		"*MPI_Send*", "*MPI_[BRS]send", "*MPI_Recv", "*MPI_Mrecv", "*MPI_Probe", "*MPI_Mprobe",
		"*MPI_I*send", "*MPI_Irecv", "*MPI_Imrecv", "*MPI_Start*", "*MPI_Wait*",
		"*MPI_Barrier", "*MPI_Bcast", "*MPI_Gather*", "*MPI_Scatter*",
		"*MPI_Allgather*", "*MPI_Alltoall*", "*MPI_Reduce", "*MPI_Reduce_scatter*",
		"*MPI_Allreduce", "*MPI_Scan", "*MPI_Exscan", "*MPI_Neighbor_*",
		"*MPI_Win_fence", "*MPI_Win_unlock*", "*MPI_Win_flush*", "*MPI_Win_complete", "*MPI_Win_wait",
	}
}

// points are the measure points for one rank.
func points(p sdk.Handle) []sdk.Point {
	var out []sdk.Point
	for i, symbol := range communication() {
		out = append(out, sdk.Point{
			ID: pointID(i, p), Symbol: symbol, DynamicCallsOnly: true,
			Place: sdk.Entry, Delivery: sdk.DeliverAggregate, Processes: []sdk.Handle{p},
		})
	}
	return out
}

func pointID(i int, p sdk.Handle) string { return fmt.Sprintf("mpi%d@%d", i, p) }
