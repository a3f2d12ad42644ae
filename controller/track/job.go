// SPDX-License-Identifier: Apache-2.0

package track

import (
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

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

// job says which execution a process with this environment belongs to: the same
// on all nodes, and another one for each start of a program. The batch system's
// job comes first, and within it the launcher's word on what it started, else
// the step. p is asked what the environment does not tell.
func (e environment) job(p place) *attunev1.Job {
	kind, launched := e.launch(p)
	for _, system := range jobSystems() {
		if e[system.id] == "" {
			continue
		}
		step := e[system.step]
		switch {
		case step == system.noStep, system.daemonStep && launched != "":
			step = launched
		case launched != "":
			step += "." + launched
		}
		return &attunev1.Job{Kind: system.kind, Id: e[system.id], Step: step}
	}
	if launched != "" {
		return &attunev1.Job{Kind: kind, Id: launched}
	}
	return p.sessionJob()
}

// launch returns who has started the ranks of an MPI program, and by what it
// calls that start on all nodes; "" if nobody has, or if Slurm did and its step
// says the same.
func (e environment) launch(p place) (kind, id string) {
	if namespace := e[pmixNamespace]; namespace != "" && !strings.HasPrefix(namespace, slurmNamespaces) {
		if address := firstAddress(e[openMPIHead]); address != "" {
			namespace += "@" + address
		}
		return "pmix", namespace
	}
	if (e[pmiDescriptor] != "" || e[pmiPort] != "") && e[pmiJob] == "" {
		return "hydra", p.hydra()
	}
	return "", ""
}

// firstAddress returns the host and port of "NAME;tcp://HOST:PORT;...".
func firstAddress(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	address, _, _ := strings.Cut(rest, ";")
	return address
}

// place is where a process is among others.
type place struct {
	pid, parent, session, group int
}

func placeOf(pid int, stat procid.Stat) place {
	return place{pid, stat.ParentPID, stat.Session, stat.ProcessGroup}
}

// sessionJob is for what no batch system or launcher has started: the process
// group, which is what a shell makes of one command, and its session on this
// host.
func (p place) sessionJob() *attunev1.Job {
	job := &attunev1.Job{Kind: "session", Id: strconv.Itoa(p.session)}
	var names unix.Utsname
	if unix.Uname(&names) == nil {
		job.Id += "@" + unix.ByteSliceToString(names.Nodename[:])
	}
	if p.group != p.session {
		job.Step = strconv.Itoa(p.group)
	}
	return job
}

const (
	hydraProxy = "hydra_pmi_proxy"
	// hydraControl is the option that tells a proxy where its mpiexec listens,
	// the same on all nodes.
	hydraControl = "--control-port"
	// maxWrappers is how many programs may stand between a proxy and the rank.
	maxWrappers = 8
)

// hydra returns the address of the mpiexec (MPICH) that has started the
// process, as HOST:PORT; "" if it is not found.
func (p place) hydra() string {
	for pid, n := p.parent, 0; pid > 1 && n <= maxWrappers; n++ {
		words := readCommandLine(pid)
		if len(words) > 0 && path.Base(words[0]) == hydraProxy {
			return optionValue(words, hydraControl)
		}
		stat, err := procid.ReadStat(pid)
		if err != nil {
			return ""
		}
		pid = stat.ParentPID
	}
	return ""
}

// optionValue returns the word behind an option.
func optionValue(words []string, option string) string {
	for i, word := range words[:max(len(words)-1, 0)] {
		if word == option {
			return words[i+1]
		}
	}
	return ""
}
