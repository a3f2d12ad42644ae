// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"testing"
)

func TestTunedApart(t *testing.T) {
	for name, row := range map[string]struct {
		environment map[string]string
		run, packed bool
	}{
		"no job":                 {nil, false, false},
		"batch script":           {map[string]string{"SLURM_JOB_NUM_NODES": "4"}, false, false},
		"Slurm, two nodes":       {map[string]string{"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "8"}, true, true},
		"Slurm, one node":        {map[string]string{"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_TASKS_PER_NODE": "8"}, true, false},
		"Slurm, one task":        {map[string]string{"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_TASKS_PER_NODE": "1"}, false, false},
		"Open MPI, two nodes":    {map[string]string{"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, true, true},
		"Open MPI, one node":     {map[string]string{"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, true, false},
		"MPICH, one node":        {map[string]string{"PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"}, true, false},
		"what is not understood": {map[string]string{"OMPI_COMM_WORLD_SIZE": "many", "PMI_SIZE": "-1"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			get := func(name string) string { return row.environment[name] }
			if run, packed := tunedApart(get, false), tunedApart(get, true); run != row.run || packed != row.packed {
				t.Errorf("run %v, packed %v; want %v, %v", run, packed, row.run, row.packed)
			}
		})
	}
}
