// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"

	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/confine"
)

// needed are the capabilities that a session's process keeps if attuned has them, each
// with what needs it.
func needed() []uintptr {
	all := []uintptr{
		unix.CAP_SYS_PTRACE,         // to enter processes, and read what /proc says of them
		unix.CAP_DAC_OVERRIDE,       // programs, libraries and sockets in folders of the user's own
		unix.CAP_DAC_READ_SEARCH,    // likewise
		unix.CAP_KILL,               // stopped threads, and whether a process is there
		unix.CAP_SETUID,             // the prober of hidden variables loads libraries as the user
		unix.CAP_SETGID,             // likewise
		unix.CAP_BPF,                // programs of uprobes and traps
		unix.CAP_PERFMON,            // attaching them; counters, debug registers
		unix.CAP_CHECKPOINT_RESTORE, // files that a process has mapped and that were replaced
		unix.CAP_LEASE,              // who writes a program waits until uprobes are out of it
		unix.CAP_SYS_RESOURCE,       // limits of processes
		unix.CAP_SYS_NICE,           // priorities and CPUs of threads, places of memory
		unix.CAP_IPC_LOCK,           // buffers of perf and BPF beyond the limit
	}
	// Uprobes before Linux 6.6, BPF before 5.8.
	if errors.Is(features.HaveBPFLinkUprobeMulti(), bpf.ErrUnsupported) {
		all = append(all, unix.CAP_SYS_ADMIN)
	}
	return all
}

// limits are those of a session's process. Of CPU time it may take more the longer it
// lives: see budget.
func limits() confine.Limits { return confine.Limits{MemoryGoal: 1 << 30, Memory: 2 << 30} }
