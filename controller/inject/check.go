// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// check refuses what must not or cannot be injected into.
func check(pid int) (procid.Status, error) {
	s, err := checkState(pid)
	if err != nil {
		return s, err
	}
	if why := objfile.Inspect(fmt.Sprintf("/proc/%d/exe", pid)).PreloadRefusal(); why != "" {
		return s, fmt.Errorf("%w: %s", ErrUnsuited, why)
	}
	return s, checkFilters(pid)
}

// checkFilters refuses a process of whose threads some are under more seccomp
// filters than others: what one of them may do another, which comes to a hook
// later, may not. Those with as many are taken to have the same, since filters
// are inherited.
func checkFilters(pid int) error {
	tids, err := procid.Threads(pid)
	if err != nil {
		return err
	}
	least, most := math.MaxInt, 0
	for _, tid := range tids {
		if s, err := procid.ReadThread(pid, tid); err == nil { // else it has ended
			least, most = min(least, s.Filters), max(most, s.Filters)
		}
	}
	if least < most {
		return fmt.Errorf("%w: its threads are under different seccomp filters", ErrUnsuited)
	}
	return nil
}

// checkState refuses a process whose threads must not or cannot be stopped.
func checkState(pid int) (procid.Status, error) {
	s, err := procid.ReadStatus(pid)
	if err != nil {
		return s, err
	}
	if why := refusal(s); why != "" {
		return s, fmt.Errorf("%w: %s", ErrUnsuited, why)
	}
	if sharesMemory(pid, s.Parent) {
		return s, fmt.Errorf("%w: it runs in the memory of its parent, process %d, until it executes a program (vfork)", ErrUnsuited, s.Parent)
	}
	return s, nil
}

// refusal says why a process in this state is left alone; "" if it need not be.
func refusal(s procid.Status) string {
	switch {
	case s.Ended():
		return "it has ended"
	case s.Tracer != 0:
		return traced(s.Tracer)
	case s.State == 'T' || s.State == 't':
		return "it is stopped: continue it first (kill -CONT), it would have to run"
	case s.ShadowStack:
		return "it has a shadow stack, on which a thread cannot be put back if this command is killed"
	case s.Seccomp == 1:
		return "it is in seccomp's strict mode and would be killed by the first system call of ours"
	}
	return ""
}

// traced tells of a tracer, of which the kernel names a thread.
func traced(tracer int) string {
	if s, err := procid.ReadStatus(tracer); err == nil {
		tracer = s.Process
	}
	return fmt.Sprintf("process %d traces it: end that debugger or tracer first", tracer)
}

// sharesMemory says whether two processes have one address space; false where
// the kernel does not tell.
func sharesMemory(pid, parent int) bool {
	const vm = 1 // KCMP_VM
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(parent), vm, 0, 0, 0)
	return parent > 0 && errno == 0 && order == 0
}

// deniedError explains a ptrace or an access to memory that was refused.
// ErrInterrupted if that was because the thread is ending.
func deniedError(tid int, err error) error {
	s, e := procid.ReadStatus(tid)
	switch {
	case e != nil || s.Ended():
		return ErrInterrupted
	case s.Tracer != 0:
		return fmt.Errorf("%w: %s", ErrDenied, traced(s.Tracer))
	}
	remedy := "needs the same user and a dumpable process, or CAP_SYS_PTRACE"
	if scope, e := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); e == nil && len(scope) > 0 && scope[0] != '0' {
		remedy = "kernel.yama.ptrace_scope is " + strings.TrimSpace(string(scope)) +
			": start the program with `attune run`, run attune with CAP_SYS_PTRACE, or set it to 0"
	}
	return fmt.Errorf("%w: thread %d: %w: %s", ErrDenied, tid, err, remedy)
}
