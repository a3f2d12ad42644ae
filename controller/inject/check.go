// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// status is what /proc/PID/status says that matters here.
type status struct {
	state   byte
	tracer  int
	uid     int // effective
	seccomp int
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
		case "TracerPid":
			s.tracer, _ = strconv.Atoi(fields[0])
		case "Uid":
			if len(fields) > 1 {
				s.uid, _ = strconv.Atoi(fields[1])
			}
		case "Seccomp":
			s.seccomp, _ = strconv.Atoi(fields[0])
		}
	}
	return s
}

// check refuses what must not or cannot be injected into.
func check(pid int, o Options) error {
	if err := checkState(pid); err != nil {
		return err
	}
	if why := objfile.Inspect(fmt.Sprintf("/proc/%d/exe", pid)).PreloadRefusal(); why != "" {
		return fmt.Errorf("%w: %s", ErrUnsuited, why)
	}
	for _, path := range []string{o.Library, o.Socket} {
		if !sees(pid, path) {
			return fmt.Errorf("%w: it does not see %s (another mount namespace or root directory): run attune inside its container", ErrUnsuited, path)
		}
	}
	return nil
}

// checkState refuses a process whose threads must not or cannot be stopped.
func checkState(pid int) error {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return fmt.Errorf("pid %d: %w", pid, procid.GoneError(err))
	}
	s := parseStatus(content)
	if why := s.refusal(os.Geteuid()); why != "" {
		return fmt.Errorf("%w: %s", ErrUnsuited, why)
	}
	return nil
}

// refusal says why a process in this state is left alone; "" if it need not be.
func (s status) refusal(euid int) string {
	switch {
	case s.state == 'Z' || s.state == 'X':
		return "it has ended"
	case s.tracer != 0:
		return fmt.Sprintf("process %d traces it: end that debugger or tracer first", s.tracer)
	case s.state == 'T' || s.state == 't':
		return "it is stopped: continue it first (kill -CONT), it would have to run"
	case s.uid != euid:
		return fmt.Sprintf("it runs as user %d: run attune as that user", s.uid)
	case s.seccomp == 1:
		return "it is in seccomp's strict mode and would be killed by the first system call of ours"
	case s.seccomp != 0:
		return "it has a seccomp filter, which may kill it for system calls of ours"
	}
	return ""
}

// sees says whether a path means the same file to the process as to us.
func sees(pid int, path string) bool {
	var own, theirs unix.Stat_t
	if unix.Stat(path, &own) != nil || unix.Stat(fmt.Sprintf("/proc/%d/root%s", pid, path), &theirs) != nil {
		return false
	}
	return own.Dev == theirs.Dev && own.Ino == theirs.Ino
}

// deniedError explains a ptrace that was refused.
func deniedError(tid int, err error) error {
	remedy := "needs the same user and a dumpable process, or CAP_SYS_PTRACE"
	if scope, e := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); e == nil && len(scope) > 0 && scope[0] != '0' {
		remedy = "kernel.yama.ptrace_scope is " + strings.TrimSpace(string(scope)) +
			": start the program with `attune run`, run attune with CAP_SYS_PTRACE, or set it to 0"
	}
	return fmt.Errorf("%w: thread %d: %w: %s", ErrDenied, tid, err, remedy)
}
