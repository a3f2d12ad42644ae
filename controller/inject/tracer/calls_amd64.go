// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// Trait is what is known of a system call in which a thread may have been stopped.
type Trait uint8

const (
	// borrowable calls hold nothing: a thread may be taken out of one, do something
	// else, and be put back into it.
	borrowable Trait = 1 << iota
	// interruptible calls fail with EINTR after any stop, not only after a signal
	// handler (signal(7)), always or where their socket has a timeout. None of them
	// has done anything when it says so, or anything that stays, so that it can be made
	// again. One that has done a part says that instead: see [Call.midway].
	interruptible
	// partial calls may sleep when they have done a part of what they are to do.
	partial
	// Outside are calls that neither an allocator nor the loader waits in: these
	// wait for locks (futex, and others' by yielding and Sleeping), and print. The
	// loader's callbacks may, under locks whose owner is asked for.
	Outside
	// Sleeping calls are none that glibc's allocator waits in either; others do, for
	// their locks.
	Sleeping
)

// TraitsOf is what is known of a system call; 0: nothing.
func TraitsOf(call int64) Trait { return traits[call] }

// traits has all system calls of which something is known.
var traits = map[int64]Trait{
	unix.SYS_READ: borrowable | interruptible | Outside, unix.SYS_READV: borrowable | interruptible | Outside,
	unix.SYS_RECVFROM: borrowable | interruptible | Outside, unix.SYS_RECVMSG: borrowable | interruptible | Outside,
	unix.SYS_WRITE: borrowable | interruptible | partial, unix.SYS_WRITEV: borrowable | interruptible | partial,
	unix.SYS_SENDTO: borrowable | interruptible | partial, unix.SYS_SENDMSG: borrowable | interruptible | partial,
	unix.SYS_RECVMMSG: interruptible | partial, unix.SYS_SENDMMSG: interruptible | partial,
	unix.SYS_SENDFILE: interruptible | partial, unix.SYS_SPLICE: interruptible | partial,
	unix.SYS_VMSPLICE: partial, unix.SYS_TEE: partial, unix.SYS_PWRITEV2: partial,
	unix.SYS_ACCEPT: borrowable | interruptible | Outside, unix.SYS_ACCEPT4: borrowable | interruptible | Outside,
	unix.SYS_CONNECT:    borrowable | interruptible,
	unix.SYS_EPOLL_WAIT: borrowable | interruptible | Outside, unix.SYS_EPOLL_PWAIT: borrowable | interruptible | Outside,
	unix.SYS_EPOLL_PWAIT2: borrowable | interruptible | Outside,
	unix.SYS_POLL:         borrowable | Outside, unix.SYS_PPOLL: borrowable | Outside,
	unix.SYS_SELECT: borrowable | Outside, unix.SYS_PSELECT6: borrowable | Outside,
	unix.SYS_PAUSE: borrowable | Outside, unix.SYS_RT_SIGSUSPEND: borrowable | Outside,
	unix.SYS_MQ_TIMEDRECEIVE: borrowable | Outside, unix.SYS_MQ_TIMEDSEND: borrowable | Outside,
	unix.SYS_WAIT4: borrowable | Outside, unix.SYS_WAITID: borrowable | Outside,
	unix.SYS_NANOSLEEP: borrowable | Sleeping, unix.SYS_CLOCK_NANOSLEEP: borrowable | Sleeping,
	unix.SYS_FUTEX: borrowable, unix.SYS_FLOCK: borrowable, unix.SYS_SCHED_YIELD: borrowable,
	// A call with a timeout that was interrupted before.
	unix.SYS_RESTART_SYSCALL: borrowable,
	unix.SYS_SEMOP:           interruptible, unix.SYS_SEMTIMEDOP: interruptible, unix.SYS_RT_SIGTIMEDWAIT: interruptible,
	unix.SYS_IO_GETEVENTS: interruptible, unix.SYS_IO_PGETEVENTS: interruptible, unix.SYS_IO_URING_ENTER: interruptible | partial,
	unix.SYS_FALLOCATE: interruptible,
}

// The kernel's codes for a call that is to be restarted; a program never sees
// them.
const (
	restartFirst = -516
	restartLast  = -512
	restartBlock = -516
	// restartNoHandler is that of calls that a handler interrupts (ERESTARTNOHAND).
	restartNoHandler = -514
	syscallBytes     = 2
	noSyscall        = ^uint64(0)
)

// UserCode is the code segment of 64-bit programs.
const UserCode = 0x33

// InCall says whether the thread stands in a system call that it can be taken out
// of and put back into.
func InCall(regs *unix.PtraceRegs) bool {
	number, result := int64(regs.Orig_rax), int64(regs.Rax)
	if number < 0 || traits[number]&borrowable == 0 {
		return false
	}
	return result >= restartFirst && result <= restartLast || failedByStop(regs)
}

// finished says whether a thread is in no system call, or one that is not to be
// restarted: then it has its result already. A thread that does little else is
// hardly ever found between two.
func finished(regs *unix.PtraceRegs) bool {
	result := int64(regs.Rax)
	return int64(regs.Orig_rax) < 0 || result < restartFirst || result > restartLast
}

// failedByStop says whether the thread stands behind a system call that may have
// failed only because the thread was stopped.
func failedByStop(regs *unix.PtraceRegs) bool {
	number := int64(regs.Orig_rax)
	return number >= 0 && int64(regs.Rax) == -int64(unix.EINTR) && traits[number]&interruptible != 0
}

// repeated does what the kernel does on the way out of an interrupted system call:
// the instruction is executed again.
func repeated(g unix.PtraceRegs) unix.PtraceRegs {
	if !InCall(&g) && !failedByStop(&g) {
		return g
	}
	if int64(g.Rax) == restartBlock {
		g.Rax = unix.SYS_RESTART_SYSCALL
	} else {
		g.Rax = g.Orig_rax
	}
	g.Rip -= syscallBytes
	g.Orig_rax = noSyscall
	return g
}

// LetGo detaches from a thread that stands and takes no signal: see [Thread.goOn].
func (t *Thread) LetGo() error { return t.letGo(0) }

// letGo detaches from a stopped thread: see [Thread.goOn].
func (t *Thread) letGo(signal unix.Signal) error { return t.goOn(unix.PTRACE_DETACH, signal) }

// goOn continues a stopped thread (PTRACE_CONT), or detaches from it, with the
// signal that it was about to take, 0 for none. What it does then is what it would
// have done if nobody had looked: a call that failed only because of the stop is
// made again, and a signal that the program discards, of which an untraced thread
// does not even hear, interrupts nothing.
func (t *Thread) goOn(request int, signal unix.Signal) error {
	if signal != 0 {
		if s, err := procid.ReadStatus(t.ID); err == nil && s.Discards(signal) {
			signal = 0
		}
	}
	if signal == 0 {
		t.repeatCall()
	}
	return t.ptrace(request, 0, uintptr(signal))
}

// repeatCall has the kernel make a call again that failed because of the stop, unless a
// signal with a handler comes before: then it fails as it would without us. The kernel
// decides on the way out of the stop, for which all stops here are early enough.
func (t *Thread) repeatCall() {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(t.ID, &regs) == nil && failedByStop(&regs) {
		result := int64(restartNoHandler)
		regs.Rax = uint64(result)
		_ = unix.PtraceSetRegs(t.ID, &regs) // it may have ended
	}
}

// interrupt stops the thread; signals that are under way reach it before.
func (t *Thread) interrupt(deadline time.Time) error {
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
				return fmt.Errorf("%w: it is being stopped by signal %d", ErrForNow, s.signal)
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

// resume continues a stopped thread with a signal. It may have ended.
func (t *Thread) resume(signal unix.Signal) error {
	return IgnoreEnd(t.goOn(unix.PTRACE_CONT, signal))
}

// IgnoreEnd leaves out that a thread has ended.
func IgnoreEnd(err error) error {
	if errors.Is(err, ErrInterrupted) {
		return nil
	}
	return err
}

// pass lets a thread that has stopped do what it would without us.
func (t *Thread) pass(status unix.WaitStatus) error {
	switch signal := status.StopSignal(); {
	case int(status)>>16 == 0:
		return t.resume(signal)
	case signal != unix.SIGTRAP: // it is being stopped, and stays so
		_ = t.ptrace(ptraceListen, 0, 0) // it may have ended
		return nil
	}
	return t.resume(0)
}
