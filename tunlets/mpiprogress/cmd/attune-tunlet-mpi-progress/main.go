// SPDX-License-Identifier: Apache-2.0

// Command attune-tunlet-mpi-progress is the tunlet against MPI ranks that spin
// while there are more of them than CPUs. The Analyzer starts it.
package main

import (
	"github.com/attune-hpc/attune/tunlets/mpiprogress"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

func main() { sdk.Serve(mpiprogress.New) }
