// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package discover

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
)

func TestExecutionsUnderGridEngine(t *testing.T) {
	w := mustWatch(t, "gridengine")
	w.mustRunOutsideOfJobs(t)
	script := func(command string) string {
		return "printf '#!/bin/sh\\n#$ -pe mpi 4 -cwd -j y -o out\\n" + command + "\\n' >job; qsub job"
	}
	for _, tt := range []struct {
		name, command string
		executions    int
	}{
		{"Open MPI's mpirun", script("mpirun.openmpi -np 4 ./attune-solver 1"), 1},
		{"two of Open MPI's mpirun", script(twice("mpirun.openmpi -np 4 ./attune-solver 1")), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.mustCall(t, cluster.Alice, tt.command)
			w.wantExecutions(t, tt.executions)
		})
	}
}
