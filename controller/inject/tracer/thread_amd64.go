// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests and constants that x/sys/unix does not have.
const (
	ptraceListen           = 0x4208
	ptraceGetSigmask       = 0x420a
	ptraceSetSigmask       = 0x420b
	ptraceSeccompGetFilter = 0x420c
	ptraceGetRseq          = 0x420f
	eventStop              = 128
	ntX86Xstate            = 0x202
)

// The tracer sleeps between looks at a thread that runs, longer and longer: the
// thread may need this very CPU.
const (
	firstPause = 10 * time.Microsecond
	mostPause  = 100 * time.Microsecond
)

// Thread is one thread of a process under ptrace. All methods must be called by the OS
// thread that seized it.
type Thread struct {
	// ID is the thread's, as this process numbers it, and Inner as the thread's own does.
	ID, Inner int

	idle    func()    // called while the tracer waits; may be nil
	running time.Time // when the thread was last seen to be not stopped
}

// seize takes hold of a thread without stopping it, with options beside the one that
// all threads have.
func (t *Thread) seize(options uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(t.ID), 0, unix.PTRACE_O_TRACESYSGOOD|options, 0, 0)
	switch errno {
	case 0:
		return nil
	case unix.ESRCH:
		return ErrInterrupted
	}
	return deniedError(t.ID, errno)
}

func (t *Thread) ptrace(request int, address, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(t.ID), address, data, 0, 0)
	return t.problem(request, errno)
}

// point is ptrace with a pointer to data, which the kernel reads or writes.
func (t *Thread) point(request int, address uintptr, data unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(t.ID), address, uintptr(data), 0, 0)
	return t.problem(request, errno)
}

func (t *Thread) problem(request int, errno unix.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.ESRCH:
		return ErrInterrupted
	}
	return fmt.Errorf("ptrace %#x of thread %d: %w", request, t.ID, errno)
}

// wait returns the next stop of the thread, errLate at the deadline, and
// ErrInterrupted if the thread has ended.
func (t *Thread) wait(deadline time.Time) (stop, error) {
	pause := firstPause
	for {
		now := time.Now()
		s, ended, err := t.poll()
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || ended:
			return stop{}, ErrInterrupted
		case s != stop{}:
			return s, nil
		case now.After(deadline):
			return stop{}, errLate
		default:
			t.running = now
			if t.idle != nil {
				t.idle()
			}
			pause = rest(pause)
		}
	}
}

// poll takes a stop of the thread, if there is one, and says whether it has
// ended.
func (t *Thread) poll() (s stop, ended bool, err error) {
	tid, status, err := nextStatus(unix.P_PID, t.ID)
	if err != nil || tid == 0 {
		return stop{}, false, err
	}
	return stop{signal: status.StopSignal(), event: int(status) >> 16}, !status.Stopped(), nil
}

// rest sleeps for so long, or less, and returns how long to sleep next.
func rest(pause time.Duration) time.Duration {
	duration := unix.NsecToTimespec(pause.Nanoseconds())
	_ = unix.Nanosleep(&duration, nil) // shorter is fine too
	return min(pause+pause/4, mostPause)
}
