// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
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
