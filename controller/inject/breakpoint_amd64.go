// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A breakpoint is a perf event on a thread's debug registers (Linux 5.13) that
// has the kernel send SIGTRAP to that thread before the instruction: it is a
// ptrace stop of that thread alone, and no byte of code is changed. Unlike what
// PTRACE_POKEUSER writes there, the event goes when its descriptor does, also
// when the tracer is killed, and takes no register that somebody else has.
const (
	trapPerf     = 6 // si_code TRAP_PERF
	bitNoKernel  = 1 << 5
	bitNoHV      = 1 << 6
	bitNoExec    = 1 << 36 // remove_on_exec
	bitSigtrap   = 1 << 37
	breakpointX  = 4 // HW_BREAKPOINT_X
	cookie       = 0x656e757474 << 16
	siCode       = 8
	siPerfData   = 24
	siginfoBytes = 128
	trapBit      = 1 << (uint(unix.SIGTRAP) - 1)
)

// watched is a thread that is waited for.
type watched struct {
	tracee
	event int // descriptor of its breakpoint; -1: none
}

func openBreakpoint(tid int, address uint64) (int, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: 1, Bits: bitNoKernel | bitNoHV | bitNoExec | bitSigtrap,
		Bp_type: breakpointX, Ext1: address, Ext2: uint64(unsafe.Sizeof(uintptr(0))), Sig_data: cookie,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ESRCH):
		return -1, ErrInterrupted
	case errors.Is(err, unix.ENOSPC):
		err = fmt.Errorf("%w: all debug registers of thread %d are in use, by itself or a debugger", ErrUnsuited, tid)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		err = fmt.Errorf("%w: breakpoints: sysctl kernel.perf_event_paranoid is above 2", ErrDenied)
	case errors.Is(err, unix.EMFILE):
		err = fmt.Errorf("%w: a breakpoint takes a descriptor for each thread: raise the limit of open files", ErrUnsuited)
	default:
		err = fmt.Errorf("%w: breakpoint in thread %d: %w", ErrUnsuited, tid, err)
	}
	return -1, err
}

// goOn continues a stopped thread with a signal.
func (w *watched) goOn(signal unix.Signal) error {
	err := w.ptrace(unix.PTRACE_CONT, 0, uintptr(signal))
	if errors.Is(err, ErrInterrupted) {
		return nil
	}
	return err
}

// pass lets a thread do what it would without us.
func (w *watched) pass(status unix.WaitStatus) error {
	const ptraceListen = 0x4208
	switch signal := status.StopSignal(); {
	case int(status)>>16 == 0:
		return w.goOn(signal)
	case signal != unix.SIGTRAP: // it is being stopped, and stays so
		_ = w.ptrace(ptraceListen, 0, 0) // it may have ended
		return nil
	}
	return w.goOn(0)
}

// ours says whether a signal is that of our breakpoint.
func (t tracee) ours(signal unix.Signal) bool {
	var info [siginfoBytes]byte
	if signal != unix.SIGTRAP || t.point(unix.PTRACE_GETSIGINFO, 0, unsafe.Pointer(&info)) != nil {
		return false
	}
	return binary.LittleEndian.Uint32(info[siCode:]) == trapPerf && binary.LittleEndian.Uint64(info[siPerfData:]) == cookie
}

// closeEvent takes the breakpoint away. Closing alone would not do: a child of
// this process has the descriptor too, from its fork to its exec, and a thread
// that hits the breakpoint when nobody traces it any more is killed.
func (w *watched) closeEvent() {
	if w.event >= 0 {
		_ = unix.IoctlSetInt(w.event, unix.PERF_EVENT_IOC_DISABLE, 0) // its thread may have ended
		unix.Close(w.event)
	}
	w.event = -1
}

// leave detaches from a thread that was told to stop. One that could run and has
// no processor is waited for up to the second deadline.
func (w *watched) leave(pid int, deadline, latest time.Time) error {
	w.idle = nil
	for {
		s, err := w.wait(deadline)
		if errors.Is(err, errLate) && time.Now().Before(latest) && runnable(pid, w.tid) {
			deadline = time.Now().Add(stopPatience)
			continue
		}
		if err != nil {
			return err
		}
		if gone, err := w.release(pid, s); gone || err != nil {
			return err
		}
	}
}

// release detaches from a thread that has stopped, unless our breakpoint's signal
// is still to come, which would kill it untraced: then it goes on to that.
func (t tracee) release(pid int, s stop) (gone bool, err error) {
	if s.event == 0 {
		if t.ours(s.signal) {
			s.signal = 0
		}
		return true, t.ptrace(unix.PTRACE_DETACH, 0, uintptr(s.signal))
	}
	if !trapPending(pid, t.tid) {
		return true, t.letGo()
	}
	err = t.ptrace(unix.PTRACE_CONT, 0, 0)
	return errors.Is(err, ErrInterrupted), err
}

// trapPending says whether a thread is about to get the signal of a breakpoint.
func trapPending(pid, tid int) bool {
	pending, err := signalSet(pid, tid, "SigPnd")
	return err == nil && pending&trapBit != 0
}
