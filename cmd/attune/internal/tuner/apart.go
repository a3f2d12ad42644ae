// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"strconv"
)

// tunedApart says whether other Analyzers tune other ranks of this job, and know
// nothing of this one: it is packed and runs on several nodes, or each rank is
// started by an attune of its own. wholeNode: the ranks of a node have one.
func tunedApart(environment func(string) string, wholeNode bool) bool {
	number := func(name string) int {
		n, err := strconv.Atoi(environment(name))
		if err != nil {
			return 0
		}
		return n
	}
	// Slurm's steps, Open MPI's and PMI's (MPICH, Intel MPI).
	if number("SLURM_STEP_NUM_NODES") > 1 {
		return true
	}
	for _, names := range [][2]string{
		{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, {"PMI_SIZE", "MPI_LOCALNRANKS"},
		{"SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
	} {
		all, here := number(names[0]), 1
		if wholeNode {
			here = number(names[1])
		}
		if here > 0 && all > here {
			return true
		}
	}
	return false
}
