// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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

const (
	// memoryGoal is where the collector of a session's process tries hard, and
	// memoryLimit where the process ends: private memory only (RLIMIT_DATA), since
	// address space is also what a job's own processes share with it.
	memoryGoal  = 1 << 30
	memoryLimit = 2 << 30
	// oomScore is added to that of attuned: a session goes first.
	oomScore    = 200
	maxOOMScore = 1000
)

// dropRights takes from this thread, and what it executes, the capabilities that no
// session needs, and those that a program's file would give.
func dropRights() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	const words, bits = 2, 32
	var keep [words]uint32
	for _, number := range needed() {
		keep[number/bits] |= 1 << (number % bits)
	}
	for number := range uintptr(words * bits) {
		if keep[number/bits]&(1<<(number%bits)) != 0 {
			continue
		}
		// EPERM without CAP_SETPCAP: then what is permitted bounds an exec, too,
		// since there are no new privileges. EINVAL: the kernel has no more.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, number, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", number, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [words]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	for i := range has {
		has[i].Effective &= keep[i]
		has[i].Permitted &= keep[i]
		has[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &has[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// confine bounds what this process may take of the machine, and keeps others from
// looking into it.
func confine() error {
	debug.SetMemoryLimit(memoryGoal)
	var errs []error
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_DATA: memoryLimit} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			errs = append(errs, fmt.Errorf("limit %d: %w", resource, err))
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		errs = append(errs, fmt.Errorf("not dumpable: %w", err))
	}
	return errors.Join(append(errs, goFirst())...)
}

// goFirst has the kernel end this process before attuned where memory is short.
func goFirst() error {
	const path = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(strconv.Itoa(min(score+oomScore, maxOOMScore))), 0)
}
