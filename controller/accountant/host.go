// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/cgroup"
	"github.com/attune-hpc/attune/internal/procid"
)

// host describes this machine. What cannot be had is absent.
func host() (h account.Host) {
	h.Name, _ = os.Hostname()
	var names unix.Utsname
	if unix.Uname(&names) == nil {
		h.Kernel = unix.ByteSliceToString(names.Release[:])
	}
	h.CPUs, _ = procid.CPUsAllowed(os.Getpid())
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = info.Totalram * uint64(info.Unit)
	}
	return h
}

// fillAvailable says what the command could have.
func fillAvailable(a *account.Account, job batch.Job) {
	set := func(name, source string) {
		a.Accuracy["available."+name], a.Sources["available."+name] = account.Exact, source
	}
	limits, _ := cgroup.LimitsOf(os.Getpid()) // without, the machine is the limit
	v := account.Available{System: job.System, Job: job.ID, Part: job.Part}
	asked := "asked of " + job.System
	switch {
	case job.Cores > 0 && job.System != "":
		v.Cores = &job.Cores
		set("cores", asked)
	case limits.CPUs > 0 && limits.CPUs < float64(a.Host.CPUs):
		v.Cores = &limits.CPUs
		set("cores", account.SourceGroup)
	case a.Host.CPUs > 0:
		v.Cores = new(float64(a.Host.CPUs))
		set("cores", account.SourceMachine)
	}
	switch {
	case job.MemoryBytes > 0 && job.System != "":
		v.Memory = &job.MemoryBytes
		set("memory_bytes", asked)
	case limits.MemoryBytes > 0 && limits.MemoryBytes < a.Host.MemoryBytes:
		v.Memory = &limits.MemoryBytes
		set("memory_bytes", account.SourceGroup)
	case a.Host.MemoryBytes > 0:
		v.Memory = &a.Host.MemoryBytes
		set("memory_bytes", account.SourceMachine)
	}
	if job.WallSeconds > 0 && job.System != "" {
		v.WallSeconds = &job.WallSeconds
		set("wall_seconds", asked)
	}
	a.Available = v
}

// ownCost is what this process took until now.
func ownCost() (cpu *float64, memory *uint64) {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) == nil {
		cpu = new(float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9)
	}
	if status, err := procid.ReadStatus(os.Getpid()); err == nil {
		memory = new(status.Peak)
	}
	return cpu, memory
}
