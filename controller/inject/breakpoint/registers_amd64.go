// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/debugregs"
)

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
	trapPerf   = 6 // si_code TRAP_PERF
	cookie     = 0x656e757474 << 16
	siPerfData = 24
)

func (r registers) Set(tid int) error {
	fd, err := debugregs.Open(tid, r.address, cookie)
	switch {
	case err == nil:
		r.events[tid] = fd
		return nil
	case errors.Is(err, unix.ESRCH):
		return tracer.ErrInterrupted
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: all debug registers of thread %d are in use, by itself or a debugger", tracer.ErrUnsuited, tid)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: breakpoints: sysctl kernel.perf_event_paranoid is above 2", tracer.ErrDenied)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: a breakpoint takes a descriptor for each thread: raise the limit of open files", tracer.ErrUnsuited)
	}
	return fmt.Errorf("%w: breakpoint in thread %d: %w", tracer.ErrUnsuited, tid, err)
}

func (registers) Stopped(t *tracer.Thread, signal unix.Signal) bool {
	code, info, err := t.TrapCode(signal)
	return err == nil && code == trapPerf && binary.LittleEndian.Uint64(info[siPerfData:]) == cookie
}

func (registers) AtExit() bool { return false }

func (r registers) Reached(tid int, stack uint64) bool {
	var regs unix.PtraceRegs
	err := unix.PtraceGetRegs(tid, &regs)
	return err == nil && regs.Rip == r.address && (stack == 0 || regs.Rsp == stack)
}

// Unset disables the event: closing alone would not do. A child of this process has
// the descriptor too, from its fork to its exec, and a thread that hits the
// breakpoint when nobody traces it any more is killed.
func (r registers) Unset(tid int) {
	if fd, ok := r.events[tid]; ok {
		_ = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0) // its thread may have ended
		unix.Close(fd)
		delete(r.events, tid)
	}
}

// Pause is for the time between the end of this process's threads, which lets the
// traced ones go, and that of its descriptors.
func (r registers) Pause(on bool) {
	request := uint(unix.PERF_EVENT_IOC_ENABLE)
	if on {
		request = unix.PERF_EVENT_IOC_DISABLE
	}
	for _, fd := range r.events {
		_ = unix.IoctlSetInt(fd, request, 0) // its thread may have ended
	}
}

func (r registers) Disable() {
	for tid := range r.events {
		r.Unset(tid)
	}
}

func (r registers) Close() error {
	r.Disable()
	return nil
}
