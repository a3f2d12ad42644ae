// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// status is what /proc/PID/status says that matters here.
type status struct {
	state   byte
	process int // that it is a thread of
	tracer  int // a thread
	uid     int // of files that it makes
	parent  int
	seccomp int
	filters int  // of seccomp
	shadow  bool // has a shadow stack
}

// parseStatus reads the content of a status file; missing lines are zero.
func parseStatus(content []byte) (s status) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		switch name {
		case "State":
			s.state = fields[0][0]
		case "Tgid":
			s.process, _ = strconv.Atoi(fields[0])
		case "TracerPid":
			s.tracer, _ = strconv.Atoi(fields[0])
		case "Uid":
			if len(fields) > 3 { // real, effective, saved, for files
				s.uid, _ = strconv.Atoi(fields[3])
			}
		case "PPid":
			s.parent, _ = strconv.Atoi(fields[0])
		case "Seccomp":
			s.seccomp, _ = strconv.Atoi(fields[0])
		case "Seccomp_filters":
			s.filters, _ = strconv.Atoi(fields[0])
		case "x86_Thread_features":
			s.shadow = slices.Contains(fields, "shstk")
		}
	}
	return s
}

// check refuses what must not or cannot be injected into.
func check(pid int) (status, error) {
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
		if s, err := statusOf(pid, tid); err == nil { // else it has ended
			least, most = min(least, s.filters), max(most, s.filters)
		}
	}
	if least < most {
		return fmt.Errorf("%w: its threads are under different seccomp filters", ErrUnsuited)
	}
	return nil
}

// checkState refuses a process whose threads must not or cannot be stopped.
func checkState(pid int) (status, error) {
	s, err := statusOf(pid, pid)
	if err != nil {
		return s, err
	}
	if why := s.refusal(); why != "" {
		return s, fmt.Errorf("%w: %s", ErrUnsuited, why)
	}
	if sharesMemory(pid, s.parent) {
		return s, fmt.Errorf("%w: it runs in the memory of its parent, process %d, until it executes a program (vfork)", ErrUnsuited, s.parent)
	}
	return s, nil
}

// statusOf reads the status of one thread.
func statusOf(pid, tid int) (status, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return status{}, fmt.Errorf("pid %d: %w", pid, procid.GoneError(err))
	}
	return parseStatus(content), nil
}

// refusal says why a process in this state is left alone; "" if it need not be.
func (s status) refusal() string {
	switch {
	case s.state == 'Z' || s.state == 'X':
		return "it has ended"
	case s.tracer != 0:
		return traced(s.tracer)
	case s.state == 'T' || s.state == 't':
		return "it is stopped: continue it first (kill -CONT), it would have to run"
	case s.shadow:
		return "it has a shadow stack, on which a thread cannot be put back if this command is killed"
	case s.seccomp == 1:
		return "it is in seccomp's strict mode and would be killed by the first system call of ours"
	}
	return ""
}

// traced tells of a tracer, of which the kernel names a thread.
func traced(tracer int) string {
	if s, err := statusOf(tracer, tracer); err == nil {
		tracer = s.process
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
	s, e := statusOf(tid, tid)
	switch {
	case e != nil || s.state == 'Z' || s.state == 'X':
		return ErrInterrupted
	case s.tracer != 0:
		return fmt.Errorf("%w: %s", ErrDenied, traced(s.tracer))
	}
	remedy := "needs the same user and a dumpable process, or CAP_SYS_PTRACE"
	if scope, e := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); e == nil && len(scope) > 0 && scope[0] != '0' {
		remedy = "kernel.yama.ptrace_scope is " + strings.TrimSpace(string(scope)) +
			": start the program with `attune run`, run attune with CAP_SYS_PTRACE, or set it to 0"
	}
	return fmt.Errorf("%w: thread %d: %w: %s", ErrDenied, tid, err, remedy)
}
