// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// Call is a system call that a thread sleeps in.
type Call struct {
	Number    int64
	Arguments [6]uint64
}

// CurrentCall tells which system call a thread sleeps in.
func CurrentCall(pid, tid int) (c Call, ok bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return c, false
	}
	number, rest, _ := strings.Cut(string(content), " ")
	if c.Number, err = strconv.ParseInt(number, 10, 64); err != nil || c.Number < 0 {
		return c, false // it runs, or sleeps in none
	}
	words := strings.Fields(rest) // the arguments, and two registers
	for i := range c.Arguments {
		if i >= len(words) {
			return c, false
		}
		if c.Arguments[i], err = strconv.ParseUint(words[i], 0, 64); err != nil {
			return c, false
		}
	}
	return c, true
}

// innerID is [procid.InnerID], or the id as we have it if that is not known.
func innerID(pid, tid int) int {
	if inner, err := procid.InnerID(pid, tid); err == nil {
		return inner
	}
	return tid
}

// Exists says whether a process has a thread.
func Exists(pid, tid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid))
	return err == nil
}

// runnable says whether a thread runs, or would if it had a processor.
func runnable(pid, tid int) bool {
	s, err := procid.ReadThread(pid, tid)
	return err == nil && s.State == 'R'
}

// tracerOf is which thread traces one, 0 if none does.
func tracerOf(tid int) int {
	s, _ := procid.ReadStatus(tid)
	return s.Tracer
}

// ownTracer says whether a thread is one of this process.
func ownTracer(tid int) bool { return tid != 0 && Exists(os.Getpid(), tid) }

// errOwnTracer is why the next try may succeed.
var errOwnTracer = fmt.Errorf("%w: another goroutine of this process is at work there", ErrBusy)
