// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The signals of faults. The kernel takes the program's handler away, for all
// threads, if one is blocked in the thread that has the fault.
const faults = 1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) |
	1<<(unix.SIGFPE-1) | 1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1)

// SignalSetID is by which glibc has each thread change its user and group ids: the thread
// that calls setuid(2) or one of its like waits until all others have taken it (SIGSETXID).
const SignalSetID unix.Signal = 33

// borrowedMask blocks every signal but the marker and faults. Code that may wait for a
// lock unblocks SignalSetID.
const borrowedMask = ^(uint64(1)<<(unix.SIGURG-1) | faults)

// Bits of the flags register.
const (
	trapFlag      = 0x100
	directionFlag = 0x400
)

// state is all of a thread that what it executes changes.
type state struct {
	regs  unix.PtraceRegs
	extra []byte // XSAVE area, in the standard format
	ends  *componentEnds
	mask  uint64
}

// save copies it. area is where the vector state goes: maxXstate bytes, made
// before the thread was stopped, and in use until the thread is put back.
func (t *Thread) save(area []byte, ends *componentEnds) (s state, err error) {
	s.ends = ends
	if s.regs, err = t.Registers(); err != nil {
		return s, err
	}
	if err := t.point(ptraceGetSigmask, 8, unsafe.Pointer(&s.mask)); err != nil {
		return s, err
	}
	part := unix.Iovec{Base: &area[0], Len: uint64(len(area))}
	err = t.point(unix.PTRACE_GETREGSET, ntX86Xstate, unsafe.Pointer(&part))
	s.extra = area[:part.Len]
	return s, err
}

// Registers are those of the thread, which stands.
func (t *Thread) Registers() (regs unix.PtraceRegs, err error) {
	if err := unix.PtraceGetRegs(t.ID, &regs); err != nil {
		return regs, fmt.Errorf("registers of thread %d: %w", t.ID, err)
	}
	return regs, nil
}

func (t *Thread) setVectors(extra []byte) error {
	part := unix.Iovec{Base: &extra[0], Len: uint64(len(extra))}
	return t.point(unix.PTRACE_SETREGSET, ntX86Xstate, unsafe.Pointer(&part))
}

func (t *Thread) setMask(mask uint64) error {
	return t.point(ptraceSetSigmask, 8, unsafe.Pointer(&mask))
}

// InSequence says whether the thread is in a restartable sequence of the
// kernel (rseq): interrupted there, it would have to be aborted. False where
// the kernel cannot tell.
func (t *Thread) InSequence(read func(uint64, []byte) error) bool {
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

// SiginfoBytes is the size of a siginfo_t, and siCode where its si_code lies.
const (
	SiginfoBytes = 128
	siCode       = 8
)

// TrapCode returns what a thread that is stopped by SIGTRAP is told of it.
func (t *Thread) TrapCode(signal unix.Signal) (code int32, info [SiginfoBytes]byte, err error) {
	if signal != unix.SIGTRAP {
		return 0, info, unix.EINVAL
	}
	return t.signalCode()
}

// signalCode returns what a thread is told of the signal that it is stopped by.
func (t *Thread) signalCode() (code int32, info [SiginfoBytes]byte, err error) {
	err = t.point(unix.PTRACE_GETSIGINFO, 0, unsafe.Pointer(&info))
	return int32(binary.LittleEndian.Uint32(info[siCode:])), info, err
}

// byKernel says whether the signal that a thread is stopped by tells of what the
// thread itself did, rather than being sent by a program.
func (t *Thread) byKernel() bool {
	code, _, err := t.signalCode()
	return err == nil && code > 0
}

// FrameBytes is the size of a signal frame as it is written here.
const FrameBytes = 512

// Offsets in a signal frame (struct ucontext of the kernel).
const (
	frameAltFlags = 24
	frameContext  = 40
	framePointer  = frameContext + 23*8
	frameMask     = frameContext + 32*8

	ucVectors  = 1 // UC_FP_XSTATE
	ucSegments = 2 // UC_SIGCONTEXT_SS
	ucStrict   = 4 // UC_STRICT_RESTORE_SS
)

// InterruptedAt is where a signal frame keeps the place that was interrupted, from the
// handler's return address on.
const InterruptedAt = 8 + frameContext + 16*8

// InterruptedStackAt is where it keeps the stack pointer of what was interrupted.
const InterruptedStackAt = 8 + frameContext + 15*8

// InterruptedResultAt is where it keeps what a system call that was interrupted
// returns, or the number of one that is to be made again.
const InterruptedResultAt = 8 + frameContext + 13*8

// vectorBytes is how many bytes the vector state takes in a signal frame.
func (s *state) vectorBytes() int { return len(s.extra) + vectorEnd }

// putFrame writes the frame that rt_sigreturn(2) restores the thread from if nobody
// else does: FrameBytes bytes, and vectorBytes bytes that will lie at an address.
func (s *state) putFrame(frame, vectors []byte, address uint64) {
	g := repeated(s.regs)
	order := binary.LittleEndian
	order.PutUint64(frame, ucVectors|ucSegments|ucStrict)
	// Invalid flags: the alternate signal stack stays what it is.
	order.PutUint32(frame[frameAltFlags:], 0x7fffffff)
	context := []uint64{
		g.R8, g.R9, g.R10, g.R11, g.R12, g.R13, g.R14, g.R15,
		g.Rdi, g.Rsi, g.Rbp, g.Rbx, g.Rdx, g.Rax, g.Rcx, g.Rsp, g.Rip, g.Eflags,
		g.Cs&0xffff | g.Ss&0xffff<<48,
	}
	for i, word := range context {
		order.PutUint64(frame[frameContext+8*i:], word)
	}
	order.PutUint64(frame[framePointer:], address)
	order.PutUint64(frame[frameMask:], s.mask)
	putVectors(vectors, s.extra, s.ends)
}
