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
