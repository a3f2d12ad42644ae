// SPDX-License-Identifier: Apache-2.0

package child

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
)

// needed are the capabilities that a session's process keeps if attuned has them, each
// with what needs it.
func needed() []uintptr {
	return []uintptr{
		unix.CAP_SYS_PTRACE,      // to enter processes, and read what /proc says of them
		unix.CAP_DAC_OVERRIDE,    // programs, libraries and sockets in folders of the user's own
		unix.CAP_DAC_READ_SEARCH, // likewise
		unix.CAP_KILL,            // stopped threads, and whether a process is there
		unix.CAP_SETUID,          // the prober of hidden variables loads libraries as the user
		unix.CAP_SETGID,          // likewise
		unix.CAP_BPF,             // programs of uprobes and traps
		unix.CAP_PERFMON,         // attaching them; counters, debug registers
		unix.CAP_SYS_ADMIN,       // seccomp filters of processes; uprobes before Linux 6.6, BPF before 5.8
		unix.CAP_SYS_RESOURCE,    // limits of processes
		unix.CAP_SYS_NICE,        // priorities and CPUs of threads, places of memory
		unix.CAP_IPC_LOCK,        // buffers of perf and BPF beyond the limit
	}
}

// limits are those of a session's process. Of CPU time it may take more the longer it
// lives: see budget.
func limits() confine.Limits { return confine.Limits{MemoryGoal: 1 << 30, Memory: 2 << 30} }
