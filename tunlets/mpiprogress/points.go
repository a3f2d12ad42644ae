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
// the less there is to do. Few patterns rather than many names, since each is
// a measure point of its own in every rank; none covers what another covers.
// The leading * lets PMPI_ names in, by which Open MPI's Fortran bindings call;
// a C program calls one of the two names, never both.
func communication() []string {
	return []string{
		"*MPI_*[Ss]end*", "*MPI_Recv", "*MPI_[IM]recv", "*MPI_[PM]*robe", "*MPI_Start*", "*MPI_Wait*",
		"*MPI_*[Bb]arrier", "*MPI_*[Bb]cast", "*MPI_*[Gg]ather*", "*MPI_Scatter*", "*MPI_*lltoall*",
		"*MPI_*[Rr]educe*", "*MPI_*[Ss]can", "*MPI_Win_*",
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
