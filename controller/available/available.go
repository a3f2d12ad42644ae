// SPDX-License-Identifier: Apache-2.0

// Package available says what processes could have on this machine: what was asked of the
// batch system, else what control groups and the machine leave. Its functions are safe for
// concurrent use.
package available

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/cgroup"
	"github.com/attune-hpc/attune/internal/procid"
)

// Sources say what an [account.Available] has its numbers from; empty: nothing tells.
type Sources struct{ Cores, Memory, Wall string }

// MachineMemory is the memory of this machine in bytes; 0: not known.
func MachineMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return info.Totalram * uint64(info.Unit)
}

// Of is what a process of a job could have.
func Of(pid int, job batch.Job) (v account.Available, from Sources) {
	limits, _ := cgroup.LimitsOf(pid) // without, the machine is the limit
	cpus, _ := procid.CPUsAllowed(pid)
	memory := MachineMemory()
	v = account.Available{System: job.System, Job: job.ID, Part: job.Part}
	asked := "asked of " + job.System
	switch {
	case job.Cores > 0 && job.System != "":
		v.Cores, from.Cores = &job.Cores, asked
	case limits.CPUs > 0 && limits.CPUs < float64(cpus):
		v.Cores, from.Cores = &limits.CPUs, account.SourceGroup
	case cpus > 0:
		v.Cores, from.Cores = new(float64(cpus)), account.SourceMachine
	}
	switch {
	case job.MemoryBytes > 0 && job.System != "":
		v.Memory, from.Memory = &job.MemoryBytes, asked
	case limits.MemoryBytes > 0 && limits.MemoryBytes < memory:
		v.Memory, from.Memory = &limits.MemoryBytes, account.SourceGroup
	case memory > 0:
		v.Memory, from.Memory = &memory, account.SourceMachine
	}
	if job.WallSeconds > 0 && job.System != "" {
		v.WallSeconds, from.Wall = &job.WallSeconds, asked
	}
	return v, from
}
