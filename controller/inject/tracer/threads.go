// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// CurrentCall tells which system call a thread sleeps in.
func CurrentCall(pid, tid int) (number int64, ok bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return 0, false
	}
	word, _, _ := strings.Cut(string(content), " ")
	number, err = strconv.ParseInt(word, 10, 64)
	return number, err == nil && number >= 0
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

// stays says whether a thread need not be stopped to be let go, since it is about to take
// no signal of a breakpoint, and would not stop soon: it sleeps uninterruptibly, as the
// parent does in vfork(2).
func stays(pid, tid int) bool {
	s, err := procid.ReadThread(pid, tid)
	return err == nil && s.State == 'D' && !s.Pending.Has(unix.SIGTRAP)
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
