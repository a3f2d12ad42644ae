// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/debugregs"
	"github.com/attune-hpc/attune/internal/proc"
)

// breakpoint stops threads that are traced, and only those, where they come to an
// address: it has the kernel send them SIGTRAP. It goes with this process.
type breakpoint interface {
	// set has a thread stopped whenever it comes there.
	set(tid int) error
	// stopped says whether a signal that a thread is stopped by is that of the
	// breakpoint.
	stopped(t tracee, signal unix.Signal) bool
	// atExit says that threads stop at the exit of the function that begins there,
	// of their outermost call, rather than at the address itself.
	atExit() bool
	// reached says whether a thread that it has stopped is where it was meant to
	// be, with a stack pointer; 0: any.
	reached(tid int, stack uint64) bool
	// unset is for a thread that has ended.
	unset(tid int)
	// pause stops nobody until it is told to go on, if the breakpoint could outlast
	// this process for a moment: a thread that hits it then is killed.
	pause(on bool)
	// disable stops nobody any more. It takes no time.
	disable()
	// close takes the breakpoint away, which may take time.
	close() error
}

// debugRegistersDead says that there are none that work; a variable for tests.
var debugRegistersDead = debugregs.Dead

// newBreakpoint makes the kind of breakpoint that this machine has. exit: if it can,
// it may as well wait at the exit of the function that begins there.
func newBreakpoint(process *proc.Handle, address uint64, exit bool) (breakpoint, error) {
	if !debugRegistersDead() {
		return registers{address, make(map[int]int)}, nil
	}
	return newProbed(process, address, exit)
}

// registers is a breakpoint in the debug registers of each thread, by perf events
// with sigtrap (Linux 5.13): the descriptors, by thread. SIGTRAP comes before the
// instruction, and no byte of code is changed. Unlike what PTRACE_POKEUSER writes
// there, the event goes when its descriptor does, also when the tracer is killed,
// and takes no register that somebody else has.
type registers struct {
	address uint64
	events  map[int]int
}

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
)

func (r registers) set(tid int) error {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: 1, Bits: bitNoKernel | bitNoHV | bitNoExec | bitSigtrap,
		Bp_type: breakpointX, Ext1: r.address, Ext2: uint64(unsafe.Sizeof(uintptr(0))), Sig_data: cookie,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case err == nil:
		r.events[tid] = fd
		return nil
	case errors.Is(err, unix.ESRCH):
		return ErrInterrupted
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: all debug registers of thread %d are in use, by itself or a debugger", ErrUnsuited, tid)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: breakpoints: sysctl kernel.perf_event_paranoid is above 2", ErrDenied)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: a breakpoint takes a descriptor for each thread: raise the limit of open files", ErrUnsuited)
	}
	return fmt.Errorf("%w: breakpoint in thread %d: %w", ErrUnsuited, tid, err)
}

func (registers) stopped(t tracee, signal unix.Signal) bool {
	code, info, err := t.trapCode(signal)
	return err == nil && code == trapPerf && binary.LittleEndian.Uint64(info[siPerfData:]) == cookie
}

func (registers) atExit() bool { return false }

func (r registers) reached(tid int, stack uint64) bool {
	var regs unix.PtraceRegs
	err := unix.PtraceGetRegs(tid, &regs)
	return err == nil && regs.Rip == r.address && (stack == 0 || regs.Rsp == stack)
}

// unset disables the event: closing alone would not do. A child of this process has
// the descriptor too, from its fork to its exec, and a thread that hits the
// breakpoint when nobody traces it any more is killed.
func (r registers) unset(tid int) {
	if fd, ok := r.events[tid]; ok {
		_ = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0) // its thread may have ended
		unix.Close(fd)
		delete(r.events, tid)
	}
}

// pause is for the time between the end of this process's threads, which lets the
// traced ones go, and that of its descriptors.
func (r registers) pause(on bool) {
	request := uint(unix.PERF_EVENT_IOC_ENABLE)
	if on {
		request = unix.PERF_EVENT_IOC_DISABLE
	}
	for _, fd := range r.events {
		_ = unix.IoctlSetInt(fd, request, 0) // its thread may have ended
	}
}

func (r registers) disable() {
	for tid := range r.events {
		r.unset(tid)
	}
}

func (r registers) close() error {
	r.disable()
	return nil
}

// several are breakpoints at some addresses, of one kind.
type several []breakpoint

func (s several) set(tid int) error {
	for _, b := range s {
		if err := b.set(tid); err != nil {
			return err
		}
	}
	return nil
}

func (s several) stopped(t tracee, signal unix.Signal) bool {
	return slices.ContainsFunc(s, func(b breakpoint) bool { return b.stopped(t, signal) })
}

func (s several) atExit() bool {
	return slices.ContainsFunc(s, func(b breakpoint) bool { return b.atExit() })
}

func (s several) reached(tid int, stack uint64) bool {
	return slices.ContainsFunc(s, func(b breakpoint) bool { return b.reached(tid, stack) })
}

func (s several) unset(tid int) {
	for _, b := range s {
		b.unset(tid)
	}
}

func (s several) pause(on bool) {
	for _, b := range s {
		b.pause(on)
	}
}

func (s several) disable() {
	for _, b := range s {
		b.disable()
	}
}

// close is for each of them, by the plan.
func (several) close() error { return nil }

// trapCode returns what a thread that is stopped by SIGTRAP is told of it.
func (t tracee) trapCode(signal unix.Signal) (code int32, info [siginfoBytes]byte, err error) {
	if signal != unix.SIGTRAP {
		return 0, info, unix.EINVAL
	}
	return t.signalCode()
}

// signalCode returns what a thread is told of the signal that it is stopped by.
func (t tracee) signalCode() (code int32, info [siginfoBytes]byte, err error) {
	err = t.point(unix.PTRACE_GETSIGINFO, 0, unsafe.Pointer(&info))
	return int32(binary.LittleEndian.Uint32(info[siCode:])), info, err
}

// byKernel says whether the signal that a thread is stopped by tells of what the
// thread itself did, rather than being sent by a program.
func (t tracee) byKernel() bool {
	code, _, err := t.signalCode()
	return err == nil && code > 0
}
