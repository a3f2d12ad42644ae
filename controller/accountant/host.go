// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/available"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/clock"
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
	h.MemoryBytes = available.MachineMemory()
	return h
}

// fillAvailable says what the command could have.
func fillAvailable(a *account.Account, job batch.Job) {
	v, from := available.Of(os.Getpid(), job)
	a.Available = v
	for name, source := range map[string]string{"cores": from.Cores, "memory_bytes": from.Memory, "wall_seconds": from.Wall} {
		if source != "" {
			a.Note(account.Exact, source, "available."+name)
		}
	}
}

// ownCost is what this process took until now.
func ownCost() (cpu *float64, memory *uint64) {
	if status, err := procid.ReadStatus(os.Getpid()); err == nil {
		memory = new(status.Peak)
	}
	return new(clock.Process().Seconds()), memory
}
