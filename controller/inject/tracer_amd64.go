// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// Requests and constants that x/sys/unix does not have.
const (
	ptraceGetSigmask = 0x420a
	ptraceSetSigmask = 0x420b
	ptraceGetRseq    = 0x420f
	eventStop        = 128
	ntX86Xstate      = 0x202
)

// The tracer sleeps between looks at a thread that runs, longer and longer: the
// thread may need this very CPU.
const (
	firstPause = 10 * time.Microsecond
	mostPause  = 100 * time.Microsecond
)

// errLate says that a thread did not stop in time.
var errLate = errors.New("thread did not stop in time")

// tracee is one thread under ptrace. All methods must be called by the OS
// thread that seized it.
type tracee struct {
	tid   int
	inner int    // the same as the process numbers it
	idle  func() // called while the tracer waits; may be nil
	// seizeOptions are those of PTRACE_SETOPTIONS, beside the one that all have.
	seizeOptions uintptr
	// running is when the thread was last seen to be not stopped.
	running time.Time
}

// stop is one ptrace stop.
type stop struct {
	signal unix.Signal
	event  int
}

// seize takes hold of a thread without stopping it.
func (t tracee) seize() error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(t.tid), 0, unix.PTRACE_O_TRACESYSGOOD|t.seizeOptions, 0, 0)
	switch errno {
	case 0:
		return nil
	case unix.ESRCH:
		return ErrInterrupted
	}
	return deniedError(t.tid, errno)
}

func (t tracee) ptrace(request int, address, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(t.tid), address, data, 0, 0)
	return t.problem(request, errno)
}

// point is ptrace with a pointer to data, which the kernel reads or writes.
func (t tracee) point(request int, address uintptr, data unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(t.tid), address, uintptr(data), 0, 0)
	return t.problem(request, errno)
}

func (t tracee) problem(request int, errno unix.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.ESRCH:
		return ErrInterrupted
	}
	return fmt.Errorf("ptrace %#x of thread %d: %w", request, t.tid, errno)
}

// hurry lets this thread run at once when it is woken: a thread of the program
// waits for it. Real-time priority would be worse: the thread needs this CPU to
// get on. What the user may not have is not needed.
func hurry() {
	const slice = 100_000 // nanoseconds; since Linux 6.12
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return
	}
	attr.Runtime = slice
	ordinary := *attr
	attr.Nice = -20
	if unix.SchedSetAttr(0, attr, 0) != nil {
		_ = unix.SchedSetAttr(0, &ordinary, 0)
	}
}

// rest sleeps for so long, or less, and returns how long to sleep next.
func rest(pause time.Duration) time.Duration {
	duration := unix.NsecToTimespec(pause.Nanoseconds())
	_ = unix.Nanosleep(&duration, nil) // shorter is fine too
	return min(pause+pause/4, mostPause)
}

// wait returns the next stop of the thread, errLate at the deadline, and
// ErrInterrupted if the thread has ended.
func (t *tracee) wait(deadline time.Time) (stop, error) {
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

// cldTrapped is the least code of a child that lives (<bits/siginfo-consts.h>).
const cldTrapped = 4

// childInfo is what waitid(2) fills in, in the place of a siginfo_t.
type childInfo struct {
	signal, _, code, _ int32
	pid, uid, status   int32
	_                  [100]byte
}

// siginfo is the same as x/sys/unix wants it.
func (c *childInfo) siginfo() *unix.Siginfo { return (*unix.Siginfo)(unsafe.Pointer(c)) }

// poll takes a stop of the thread, if there is one, and says whether it has
// ended.
func (t *tracee) poll() (s stop, ended bool, err error) {
	tid, status, err := nextStatus(unix.P_PID, t.tid)
	if err != nil || tid == 0 {
		return stop{}, false, err
	}
	return stop{signal: status.StopSignal(), event: int(status) >> 16}, !status.Stopped(), nil
}

// nextStatus is wait4(2) without waiting, for one thread (P_PID) or all that
// this OS thread traces (P_ALL), but that the end of a child of this very
// process is left for whoever started it: its status says no more than that.
// Thread 0: there is nothing new.
func nextStatus(kind, id int) (tid int, status unix.WaitStatus, err error) {
	options := unix.WALL | unix.WNOHANG
	if kind == unix.P_ALL {
		options |= unix.WNOTHREAD
	}
	var info childInfo
	err = unix.Waitid(kind, id, info.siginfo(), options|unix.WSTOPPED, nil)
	if errors.Is(err, unix.ECHILD) { // so it says too where all that is left has ended
		err = nil
	}
	if err != nil || info.signal != 0 {
		return int(info.pid), unix.WaitStatus(0x7f | uint32(info.status)<<8), err
	}
	err = unix.Waitid(kind, id, info.siginfo(), options|unix.WEXITED|unix.WNOWAIT, nil)
	// A stop that has come since shows here as well.
	if err != nil || info.signal == 0 || info.code >= cldTrapped {
		return 0, 0, err
	}
	if tid = int(info.pid); !ownChild(tid) {
		err = unix.Waitid(unix.P_PID, tid, nil, unix.WALL|unix.WNOHANG|unix.WEXITED, nil)
	}
	return tid, 0, err
}

// ownChild says whether a thread is the first one of a child of this process.
func ownChild(tid int) bool {
	s, err := procid.ReadStatus(tid)
	return err == nil && s.Process == tid && s.Parent == os.Getpid()
}

// interrupt stops the thread; signals that are under way reach it before.
func (t *tracee) interrupt(deadline time.Time) error {
	t.running = time.Now()
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
		if err := t.goOn(unix.PTRACE_CONT, s.signal); err != nil {
			return err
		}
	}
}

// state is all of a thread that the call changes.
type state struct {
	regs  unix.PtraceRegs
	extra []byte // XSAVE area, in the standard format
	mask  uint64
}

// save copies it. area is where the vector state goes: maxXstate bytes, made
// before the thread was stopped, and in use until the thread is put back.
func (t tracee) save(area []byte) (s state, err error) {
	if s, err = t.place(); err != nil {
		return s, err
	}
	part := unix.Iovec{Base: &area[0], Len: uint64(len(area))}
	err = t.point(unix.PTRACE_GETREGSET, ntX86Xstate, unsafe.Pointer(&part))
	s.extra = area[:part.Len]
	return s, err
}

// place is save without vector state.
func (t tracee) place() (s state, err error) {
	if err := unix.PtraceGetRegs(t.tid, &s.regs); err != nil {
		return s, fmt.Errorf("registers of thread %d: %w", t.tid, err)
	}
	return s, t.point(ptraceGetSigmask, 8, unsafe.Pointer(&s.mask))
}

func (t tracee) setVectors(extra []byte) error {
	part := unix.Iovec{Base: &extra[0], Len: uint64(len(extra))}
	return t.point(unix.PTRACE_SETREGSET, ntX86Xstate, unsafe.Pointer(&part))
}

func (t tracee) setMask(mask uint64) error {
	return t.point(ptraceSetSigmask, 8, unsafe.Pointer(&mask))
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
	if t.point(ptraceGetRseq, unsafe.Sizeof(config), unsafe.Pointer(&config)) != nil || config.pointer == 0 {
		return false
	}
	section := make([]byte, 8)
	if read(config.pointer+8, section) != nil {
		return false
	}
	return [8]byte(section) != [8]byte{}
}
