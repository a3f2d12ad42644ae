// SPDX-License-Identifier: Apache-2.0

package track

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// JobVariable carries Attune's own job id in the environment of a job.
const JobVariable = "ATTUNE_JOB"

// JobKind is the kind of a job that has it.
const JobKind = "attune"

// jobSystem is a batch system or launcher that leaves its job id in the
// environment.
type jobSystem struct {
	kind, id, step string
	// noStep is what the step variable holds where there is no step.
	noStep string
}

// jobSystems in the order of precedence.
func jobSystems() []jobSystem {
	return []jobSystem{
		{kind: JobKind, id: JobVariable},
		{kind: "slurm", id: "SLURM_JOB_ID", step: "SLURM_STEP_ID"},
		{kind: "pbs", id: "PBS_JOBID", step: "PBS_ARRAY_INDEX"},
		{kind: "sge", id: "JOB_ID", step: "SGE_TASK_ID", noStep: "undefined"},
		{kind: "lsf", id: "LSB_JOBID", step: "LSB_JOBINDEX", noStep: "0"},
		{kind: "pmix", id: "PMIX_NAMESPACE"},
		{kind: "globus", id: "GLOBUS_GRAM_JOB_HANDLE"},
	}
}

// rankVariables tell an MPI process its rank, in the order of precedence.
// SLURM_PROCID is none of them: under mpirun it is the rank of mpirun's own
// daemon.
func rankVariables() []string {
	return []string{"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}
}

// environment holds the variables that say where a process belongs.
type environment map[string]string

// parseEnviron picks those variables from the content of /proc/PID/environ.
// The program may have overwritten it with anything.
func parseEnviron(data []byte) environment {
	wanted := make(map[string]bool)
	for _, system := range jobSystems() {
		wanted[system.id], wanted[system.step] = true, true
	}
	for _, name := range rankVariables() {
		wanted[name] = true
	}
	found := make(environment)
	for len(data) > 0 {
		var entry []byte
		entry, data, _ = bytes.Cut(data, []byte{0})
		name, value, ok := bytes.Cut(entry, []byte("="))
		if !ok || len(name) == 0 || !wanted[string(name)] {
			continue
		}
		// As getenv does: the first of several counts.
		if _, again := found[string(name)]; !again && len(value) <= maxTextBytes {
			found[string(name)] = strings.ToValidUTF8(string(value), "?")
		}
	}
	return found
}

// job says which execution a process with this environment belongs to.
func (e environment) job(session int) *attunev1.Job {
	for _, system := range jobSystems() {
		id := e[system.id]
		if id == "" {
			continue
		}
		step := e[system.step]
		if step == system.noStep {
			step = ""
		}
		return &attunev1.Job{Kind: system.kind, Id: id, Step: step}
	}
	return &attunev1.Job{Kind: "session", Id: strconv.Itoa(session)}
}

// rank returns the MPI rank, nil outside MPI. Launchers write special values
// above the greatest rank (PMIX_RANK_UNDEF is 2^32-1).
func (e environment) rank() *int32 {
	for _, name := range rankVariables() {
		value, err := strconv.ParseUint(e[name], 10, 32)
		if err == nil && value < math.MaxInt32 {
			rank := int32(value)
			return &rank
		}
	}
	return nil
}
