// SPDX-License-Identifier: Apache-2.0

package track

// JobVariable carries Attune's own job id in the environment of a job.
const JobVariable = "ATTUNE_JOB"

// OffVariable with the value Off keeps a process, and what inherits it, out of
// Attune's hands.
const (
	OffVariable = "ATTUNE"
	Off         = "off"
)

// rankVariables tell an MPI process its rank, in the order of precedence.
func rankVariables() []string {
	return []string{"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}
}

// slurmRank is the rank of a task of srun where no launcher tells another: under
// mpirun it is that of mpirun's own daemon, and in the batch script it means
// nothing.
const slurmRank, slurmStep = "SLURM_PROCID", "SLURM_STEP_ID"

// jobSystem is a batch system that leaves its job id in the environment.
type jobSystem struct {
	kind, id, step string
	// noStep is what the step variable holds where there is no step.
	noStep string
	// daemonStep says that the step may be that of a launcher's daemon: what
	// mpirun starts on another node is in a step of Slurm's there, and in none
	// beside mpirun.
	daemonStep bool
}

// jobSystems in the order of precedence.
func jobSystems() []jobSystem {
	return []jobSystem{
		{kind: "slurm", id: "SLURM_JOB_ID", step: "SLURM_STEP_ID", daemonStep: true},
		{kind: "pbs", id: "PBS_JOBID", step: "PBS_ARRAY_INDEX"},
		{kind: "sge", id: "JOB_ID", step: "SGE_TASK_ID", noStep: "undefined"},
		{kind: "lsf", id: "LSB_JOBID", step: "LSB_JOBINDEX", noStep: "0"},
		{kind: "globus", id: "GLOBUS_GRAM_JOB_HANDLE"},
	}
}

// Variables of launchers.
const (
	pmixNamespace = "PMIX_NAMESPACE"
	// slurmNamespaces begin so; what follows is job and step.
	slurmNamespaces = "slurm.pmix."
	// openMPIHead is where Open MPI's mpirun (before 5.0) is reached:
	// "1273233408.0;tcp://10.99.0.1:34057". Its namespaces are 32-bit numbers,
	// which alone are not unique at a site.
	openMPIHead = "OMPI_MCA_orte_hnp_uri"
	// pmiDescriptor is set by whoever speaks PMI: Hydra, and Slurm, which sets
	// pmiJob as well.
	pmiDescriptor, pmiPort, pmiJob = "PMI_FD", "PMI_PORT", "PMI_JOBID"
)

// jobVariables are all that identify an execution.
func jobVariables() []string {
	names := []string{JobVariable, pmixNamespace, openMPIHead, pmiDescriptor, pmiPort, pmiJob}
	for _, system := range jobSystems() {
		names = append(names, system.id)
		if system.step != "" {
			names = append(names, system.step)
		}
	}
	return names
}
