// SPDX-License-Identifier: Apache-2.0

package batch

import "testing"

func TestCurrent(t *testing.T) {
	for _, row := range []struct {
		name string
		env  map[string]string
		want Job
		node float64 // cores of all tasks there, where that is more
	}{
		{"none", nil, Job{}, 0},
		{"Slurm", map[string]string{
			"SLURM_JOB_ID": "4711", "SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_CPU": "1024", "SLURM_JOB_START_TIME": "1000", "SLURM_JOB_END_TIME": "1600",
		}, Job{System: Slurm, ID: "4711", Cores: 4, MemoryBytes: 4 << 30, WallSeconds: 600}, 0},
		{"memory of the node", map[string]string{"SLURM_JOB_ID": "1", "SLURM_MEM_PER_NODE": "2048", "SLURM_MEM_PER_CPU": "1"}, Job{System: Slurm, ID: "1", MemoryBytes: 2 << 30}, 0},
		{"Grid Engine", map[string]string{"JOB_ID": "7", "NSLOTS": "8"}, Job{System: GridEngine, ID: "7", Cores: 8}, 0},
		{"one of eight tasks", map[string]string{"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "16", "SLURM_MEM_PER_NODE": "4096", "SLURM_STEP_NUM_TASKS": "8"},
			Job{System: Slurm, ID: "1", Part: true}, 16},
		{"a task with cores of its own", map[string]string{"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "16", "SLURM_CPUS_PER_TASK": "2", "SLURM_MEM_PER_CPU": "1024", "OMPI_COMM_WORLD_SIZE": "8"},
			Job{System: Slurm, ID: "1", Cores: 2, MemoryBytes: 2 << 30, Part: true}, 16},
		{"the script of a job of eight tasks", map[string]string{"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "16", "SLURM_MEM_PER_NODE": "2048", "SLURM_NTASKS": "8"},
			Job{System: Slurm, ID: "1", Cores: 16, MemoryBytes: 2 << 30, Part: true}, 0},
		{"nonsense", map[string]string{"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "-2", "SLURM_MEM_PER_NODE": "NaN"}, Job{System: Slurm, ID: "1"}, 0},
	} {
		if got := OnNode(func(name string) string { return row.env[name] }); got.Cores != max(row.want.Cores, row.node) || got.WallSeconds != row.want.WallSeconds {
			t.Errorf("%s: %+v on the node, want the cores of all tasks", row.name, got)
		}
		if got := Current(func(name string) string { return row.env[name] }); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}
