// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// stepPatience bounds one system call made in the thread.
const stepPatience = time.Second

// callStop is the signal of a stop at a system call (PTRACE_O_TRACESYSGOOD).
const callStop = unix.SIGTRAP | 0x80

// syscall makes the thread execute one system call, by an instruction of its
// libc, and stops behind it with all signals but the marker and faults blocked. If the
// tracer dies at any point of it, the thread goes on and back by its lifeline.
//
// That is why the thread does not step: when a tracer dies the kernel leaves
// the processor's trap flag set, and the SIGTRAP that comes of it kills. And the
// stop behind is that of PTRACE_INTERRUPT, not the one at the call's end, from
// where a call that the thread was taken out of would not be restarted.
func (c *conversation) syscall(number uint64, arguments ...uint64) (uint64, error) {
	if err := c.aim(number, arguments); err != nil {
		return 0, err
	}
	if err := c.goTo(unix.PTRACE_SYSCALL, "at the system call", func(s stop) bool { return s.signal == callStop }); err != nil {
		return 0, err
	}
	if err := c.ptrace(unix.PTRACE_INTERRUPT, 0, 0); err != nil {
		return 0, err
	}
	if err := c.goTo(unix.PTRACE_CONT, "behind the system call", func(s stop) bool { return s.event == eventStop }); err != nil {
		return 0, err
	}
	var g unix.PtraceRegs
	if err := unix.PtraceGetRegs(c.tid, &g); err != nil {
		return 0, err
	}
	if result := int64(g.Rax); result < 0 && result > -4096 {
		return 0, unix.Errno(-result)
	}
	return g.Rax, nil
}

// aim leads the thread to the system call. The registers come first: they bring
// the lifeline, and that the signal mask.
func (c *conversation) aim(number uint64, arguments []uint64) error {
	var a [6]uint64
	copy(a[:], arguments)
	g := c.saved.regs
	g.Rip, g.Rax, g.Orig_rax = c.ground.gadget, number, noSyscall
	g.Rdi, g.Rsi, g.Rdx, g.R10, g.R8, g.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	g.Eflags &^= trapFlag
	if c.lifeline.at != 0 {
		g.Rsp = c.lifeline.pointer
	}
	if err := unix.PtraceSetRegs(c.tid, &g); err != nil {
		return err
	}
	if err := c.dies("with other registers"); err != nil {
		return err
	}
	if err := c.setMask(borrowedMask); err != nil {
		return err
	}
	return c.dies("with signals blocked")
}

// goTo continues the thread until a certain stop; signals are kept for later.
func (c *conversation) goTo(request int, where string, reached func(stop) bool) error {
	for {
		if err := c.ptrace(request, 0, 0); err != nil {
			return err
		}
		s, err := c.wait(time.Now().Add(stepPatience))
		switch {
		case errors.Is(err, errLate):
			return ErrTimeout
		case err != nil:
			return err
		case reached(s):
			return c.dies(where)
		case s.event == eventStop: // a stop of the whole process began
		case s.event != 0:
			return ErrInterrupted
		default:
			c.held = append(c.held, s.signal)
		}
	}
}

// dies is where tests end the tracer.
func (c *conversation) dies(where string) error {
	if c.options.died != nil && c.options.died(where) {
		return errDied
	}
	return nil
}
