// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests and constants that x/sys/unix does not have.
const (
	ptraceGetSigmask = 0x420a
	ptraceSetSigmask = 0x420b
	ptraceGetRseq    = 0x420f
	eventStop        = 128
	ntX86Xstate      = 0x202
	maxXstate        = 64 << 10
)

// waitPause is how long the tracer sleeps between looks at a thread that runs.
const waitPause = 20 * time.Microsecond

// errLate says that a thread did not stop in time.
var errLate = errors.New("thread did not stop in time")

// tracee is one thread under ptrace. All methods must be called by the OS
// thread that seized it.
type tracee struct {
	tid  int
	idle func() // called while the tracer waits; may be nil
}

// stop is one ptrace stop.
type stop struct {
	signal unix.Signal
	event  int
}

// seize takes hold of a thread without stopping it.
func seize(tid int) (tracee, error) {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0)
	switch errno {
	case 0:
		return tracee{tid: tid}, nil
	case unix.ESRCH:
		return tracee{}, ErrInterrupted
	}
	return tracee{}, deniedError(tid, errno)
}

func (t tracee) ptrace(request int, address, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(t.tid), address, data, 0, 0)
	if errno == unix.ESRCH {
		return ErrInterrupted
	}
	if errno != 0 {
		return fmt.Errorf("ptrace %#x of thread %d: %w", request, t.tid, errno)
	}
	return nil
}

// wait returns the next stop of the thread, errLate at the deadline, and
// ErrInterrupted if the thread has ended.
func (t tracee) wait(deadline time.Time) (stop, error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(t.tid, &status, unix.WALL|unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || got == t.tid && !status.Stopped():
			return stop{}, ErrInterrupted
		case got == t.tid:
			return stop{signal: status.StopSignal(), event: int(status) >> 16}, nil
		case time.Now().After(deadline):
			return stop{}, errLate
		default:
			if t.idle != nil {
				t.idle()
			}
			pause := unix.NsecToTimespec(waitPause.Nanoseconds())
			_ = unix.Nanosleep(&pause, nil) // shorter is fine too
		}
	}
}

// interrupt stops the thread; signals that are under way reach it before.
func (t tracee) interrupt(deadline time.Time) error {
	if err := t.ptrace(unix.PTRACE_INTERRUPT, 0, 0); err != nil {
		return err
	}
	for {
		s, err := t.wait(deadline)
		if err != nil {
			return err
		}
		if s.event == eventStop {
			if s.signal != unix.SIGTRAP {
				return fmt.Errorf("%w: it is being stopped by signal %d", ErrUnsuited, s.signal)
			}
			return nil
		}
		if s.event != 0 {
			return ErrInterrupted
		}
		if err := t.ptrace(unix.PTRACE_CONT, 0, uintptr(s.signal)); err != nil {
			return err
		}
	}
}

// letGo detaches from a stopped thread.
func (t tracee) letGo() error { return t.ptrace(unix.PTRACE_DETACH, 0, 0) }

// state is all of a thread that the call changes.
type state struct {
	regs  unix.PtraceRegs
	extra []byte // XSAVE area, in the standard format
	mask  uint64
}

func (t tracee) save() (s state, err error) {
	if err := unix.PtraceGetRegs(t.tid, &s.regs); err != nil {
		return s, fmt.Errorf("registers of thread %d: %w", t.tid, err)
	}
	area := make([]byte, maxXstate)
	part := unix.Iovec{Base: &area[0], Len: maxXstate}
	if err := t.ptrace(unix.PTRACE_GETREGSET, ntX86Xstate, uintptr(unsafe.Pointer(&part))); err != nil {
		return s, err
	}
	s.extra = area[:part.Len]
	return s, t.ptrace(ptraceGetSigmask, 8, uintptr(unsafe.Pointer(&s.mask)))
}

// restore is the opposite of save.
func (t tracee) restore(s state) error {
	part := unix.Iovec{Base: &s.extra[0], Len: uint64(len(s.extra))}
	return errors.Join(
		t.ptrace(unix.PTRACE_SETREGSET, ntX86Xstate, uintptr(unsafe.Pointer(&part))),
		unix.PtraceSetRegs(t.tid, &s.regs),
		t.setMask(s.mask))
}

func (t tracee) setMask(mask uint64) error {
	return t.ptrace(ptraceSetSigmask, 8, uintptr(unsafe.Pointer(&mask)))
}

// inSequence says whether the thread is in a restartable sequence of the
// kernel (rseq): interrupted there, it would have to be aborted. False where
// the kernel cannot tell.
func (t tracee) inSequence(read func(uint64, []byte) error) bool {
	var config struct {
		pointer         uint64
		size, signature uint32
		flags, pad      uint32
	}
	if t.ptrace(ptraceGetRseq, unsafe.Sizeof(config), uintptr(unsafe.Pointer(&config))) != nil || config.pointer == 0 {
		return false
	}
	section := make([]byte, 8)
	if read(config.pointer+8, section) != nil {
		return false
	}
	return [8]byte(section) != [8]byte{}
}
