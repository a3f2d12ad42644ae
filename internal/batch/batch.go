// SPDX-License-Identifier: Apache-2.0

// Package batch reads what a batch system says in the environment of a job. Its functions
// are safe for concurrent use.
package batch

import (
	"slices"
	"strconv"
)

// The batch systems, as attune archive estimate --for names them where it has a form for
// them.
const (
	Slurm      = "slurm"
	GridEngine = "gridengine"
	PBS        = "pbs"
	LSF        = "lsf"
)

// Job is a job, and what was asked for it on this node; 0: nothing, or it is not said.
type Job struct {
	// System is one of the constants; empty: this is no job.
	System string
	ID     string
	// Cores may be a part of one.
	Cores       float64
	MemoryBytes uint64
	WallSeconds float64
	// Part says that the job is of several tasks or nodes, and so that this process may not
	// be all of it. What was asked for is that of a task where this is one of those.
	Part bool
}

// systems are the variables that hold a job's id.
var systems = []struct{ variable, system string }{
	{"SLURM_JOB_ID", Slurm}, {"PBS_JOBID", PBS}, {"JOB_ID", GridEngine}, {"LSB_JOBID", LSF},
}

// Variables of which a [Job] is made, beside those that hold its id and those of launchers.
var variables = []string{
	"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_JOB_NUM_NODES", "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "NSLOTS",
	"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME",
}

// Variables are the names of those that OnNode asks for.
func Variables() []string {
	names := slices.Clone(variables)
	for _, s := range systems {
		names = append(names, s.variable)
	}
	return names
}

// Current is the job that an environment is of, with what was asked for this process.
func Current(env func(string) string) Job {
	number := numbers(env)
	return jobOf(env, max(number("SLURM_STEP_NUM_TASKS"), number("OMPI_COMM_WORLD_SIZE"), number("PMI_SIZE")) > 1)
}

// OnNode is the job that an environment is of, with what was asked for all of its tasks on
// this node.
func OnNode(env func(string) string) Job { return jobOf(env, false) }

// numbers returns the numbers above 0 that variables hold.
func numbers(env func(string) string) func(name string) float64 {
	return func(name string) float64 {
		n, err := strconv.ParseFloat(env(name), 64)
		if err != nil || !(n > 0) {
			return 0
		}
		return n
	}
}

// jobOf is the job that an environment is of, with what was asked for one of its tasks, or
// for all on this node.
func jobOf(env func(string) string, task bool) (job Job) {
	number := numbers(env)
	for _, s := range systems {
		if job.ID = env(s.variable); job.ID != "" {
			job.System = s.system
			break
		}
	}
	const mib = 1 << 20
	job.Part = task || max(number("SLURM_NTASKS"), number("SLURM_JOB_NUM_NODES")) > 1
	switch {
	case task:
		job.Cores = number("SLURM_CPUS_PER_TASK")
	case number("SLURM_CPUS_ON_NODE") > 0:
		job.Cores = number("SLURM_CPUS_ON_NODE")
	default:
		job.Cores = number("NSLOTS") // Grid Engine
	}
	switch each, node := number("SLURM_MEM_PER_CPU"), number("SLURM_MEM_PER_NODE"); {
	case task && job.Cores == 0:
	case node > 0 && !task:
		job.MemoryBytes = uint64(node * mib)
	case each > 0:
		job.MemoryBytes = uint64(each * max(job.Cores, 1) * mib)
	}
	if begin, end := number("SLURM_JOB_START_TIME"), number("SLURM_JOB_END_TIME"); end > begin && begin > 0 {
		job.WallSeconds = end - begin
	}
	return job
}
