// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// callStop is the signal of a stop at a system call (PTRACE_O_TRACESYSGOOD).
const callStop = unix.SIGTRAP | 0x80

// Borrowed is a thread that executes something for the caller. The errors of its
// methods by which it is lost are those of [Lost].
type Borrowed struct {
	*Thread
	borrower *Borrower
	saved    state
	lifeline lifeline
	held     []unix.Signal // came meanwhile and could not be blocked
}

// Borrow takes over a thread that stands. [Borrowed.GiveBack] follows, unless the
// thread is lost ([Lost]).
func (b *Borrower) Borrow(t *Thread) (*Borrowed, error) {
	s, err := t.save(b.area, &b.ends)
	if err != nil {
		return nil, err
	}
	return &Borrowed{Thread: t, borrower: b, saved: s, lifeline: b.lifelines.secure(t.ID, &s)}, nil
}

// Saved are the registers that the thread gets back.
func (b *Borrowed) Saved() unix.PtraceRegs { return b.saved.regs }

// VectorBytes is what [Borrowed.PutFrame] writes beside the frame, bytes.
func (b *Borrowed) VectorBytes() int { return b.saved.vectorBytes() }

// PutFrame writes the frame that rt_sigreturn(2) restores the thread from, if the tracer
// is killed meanwhile: FrameBytes bytes, and VectorBytes bytes that will lie at an
// address, a multiple of 64.
func (b *Borrowed) PutFrame(frame, vectors []byte, address uint64) {
	b.saved.putFrame(frame, vectors, address)
}

// Syscall makes the thread execute one system call, by the gadget, and stops behind it
// with all signals but the marker and faults blocked. If the tracer dies at any point
// of it, the thread goes on and back by its lifeline.
//
// That is why the thread does not step: when a tracer dies the kernel leaves
// the processor's trap flag set, and the SIGTRAP that comes of it kills. And the
// stop behind is that of PTRACE_INTERRUPT, not the one at the call's end, from
// where a call that the thread was taken out of would not be restarted.
func (b *Borrowed) Syscall(number uint64, arguments ...uint64) (uint64, error) {
	if err := b.aim(number, arguments); err != nil {
		return 0, err
	}
	if err := b.goTo(unix.PTRACE_SYSCALL, "at the system call", func(s stop) bool { return s.signal == callStop }); err != nil {
		return 0, err
	}
	if err := b.ptrace(unix.PTRACE_INTERRUPT, 0, 0); err != nil {
		return 0, err
	}
	if err := b.goTo(unix.PTRACE_CONT, "behind the system call", func(s stop) bool { return s.event == eventStop }); err != nil {
		return 0, err
	}
	g, err := b.Registers()
	if err != nil {
		return 0, err
	}
	if result := int64(g.Rax); result < 0 && result > -4096 {
		return 0, unix.Errno(-result)
	}
	return g.Rax, nil
}

// aim leads the thread to the system call. The registers come first: they bring
// the lifeline, and that the signal mask.
func (b *Borrowed) aim(number uint64, arguments []uint64) error {
	var a [6]uint64
	copy(a[:], arguments)
	g := b.saved.regs
	g.Rip, g.Rax, g.Orig_rax = b.borrower.options.Gadget.Address, number, noSyscall
	g.Rdi, g.Rsi, g.Rdx, g.R10, g.R8, g.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	g.Eflags &^= trapFlag
	if b.lifeline.at != 0 {
		g.Rsp = b.lifeline.pointer
	}
	if err := unix.PtraceSetRegs(b.ID, &g); err != nil {
		return err
	}
	if err := b.dies("with other registers"); err != nil {
		return err
	}
	if err := b.setMask(borrowedMask); err != nil {
		return err
	}
	return b.dies("with signals blocked")
}

// goTo continues the thread until a certain stop; signals are kept for later.
func (b *Borrowed) goTo(request int, where string, reached func(stop) bool) error {
	for {
		if err := b.ptrace(request, 0, 0); err != nil {
			return err
		}
		s, late, err := b.nextStop()
		switch {
		case err != nil:
		case reached(s):
			return b.dies(where)
		case s.event == eventStop && late:
			return errNotRun
		case s.event == eventStop: // a stop of the whole process began
		case s.event != 0:
			return ErrInterrupted
		default:
			_, err = b.signalled(s.signal, 0)
		}
		if err != nil {
			return err
		}
	}
}

// nextStop waits for the next stop, and says whether that came late. A late thread with a
// lifeline is given up: it restores itself. One without is told to stop, and waited for.
func (b *Borrowed) nextStop() (s stop, late bool, err error) {
	for {
		s, err = b.wait(time.Now().Add(stepPatience))
		switch {
		case !errors.Is(err, errLate):
			return s, late, err
		case b.lifeline.at != 0:
			return s, true, ErrTimeout
		}
		if late, err = true, b.ptrace(unix.PTRACE_INTERRUPT, 0, 0); err != nil {
			return s, true, err // another thread may have executed a program in its place
		}
	}
}

// Run has the thread execute code from some registers on, behind a [Borrowed.Syscall]
// (which has blocked the signals), until it sends itself SIGURG with the instruction
// pointer at a marker. besides is called while the tracer waits; may be nil.
func (b *Borrowed) Run(from unix.PtraceRegs, marker uint64, timeout time.Duration, besides func()) error {
	from.Orig_rax = noSyscall
	from.Eflags &^= directionFlag | trapFlag
	if err := unix.PtraceSetRegs(b.ID, &from); err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	if err := b.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
		return err
	}
	if err := b.dies("in the code"); err != nil {
		return err
	}
	idle := b.idle
	defer func() { b.idle = idle }()
	b.idle = func() {
		idle()
		if besides != nil {
			besides()
		}
	}
	return b.arrive(marker, deadline)
}

// arrive waits for the marker.
func (b *Borrowed) arrive(marker uint64, deadline time.Time) error {
	for {
		s, err := b.wait(deadline)
		if errors.Is(err, errLate) {
			return ErrTimeout
		}
		if err != nil {
			return err
		}
		var pass unix.Signal
		switch {
		case s.event == 0 && s.signal == SignalSetID:
			pass = SignalSetID // sent again by us it would be none of glibc's
		case s.event == 0:
			if arrived, err := b.signalled(s.signal, marker); arrived || err != nil {
				return err
			}
		case s.event != eventStop:
			return ErrInterrupted
		}
		if err := b.ptrace(unix.PTRACE_CONT, 0, uintptr(pass)); err != nil {
			return err
		}
	}
}

// signalled deals with a signal during the call: the marker, a fault, or one
// that is kept for later.
func (b *Borrowed) signalled(signal unix.Signal, marker uint64) (arrived bool, err error) {
	g, err := b.Registers()
	if err != nil {
		return false, err
	}
	switch {
	case signal == unix.SIGABRT || faults>>(signal-1)&1 != 0 && b.byKernel():
		return false, fmt.Errorf("%w: %v at %#x", ErrCall, unix.SignalName(signal), g.Rip)
	case signal == unix.SIGURG && g.Rip == marker:
		return true, nil
	}
	b.held = append(b.held, signal)
	return false, nil
}

// GiveBack puts the thread back, sends it again what came meanwhile, and lets it go.
func (b *Borrowed) GiveBack() error {
	var errs []error
	for _, signal := range b.held {
		errs = append(errs, unix.Tgkill(b.borrower.process.PID(), b.ID, signal))
	}
	err := b.putBack()
	if errors.Is(err, ErrDied) {
		return err
	}
	return errors.Join(append(errs, err, b.letGo(0))...)
}

// putBack is the opposite of save. The registers come last: until then the
// lifeline, or the frame of what it executed, restores the rest.
func (b *Borrowed) putBack() error {
	err := errors.Join(b.setVectors(b.saved.extra), b.setMask(b.saved.mask))
	if err := b.dies("with signals free again"); err != nil {
		return err
	}
	if e := unix.PtraceSetRegs(b.ID, &b.saved.regs); e != nil {
		return errors.Join(err, e)
	}
	b.borrower.lifelines.unsecure(b.lifeline)
	return err
}

// dies is where tests end the tracer.
func (b *Borrowed) dies(where string) error {
	if died := b.borrower.options.Died; died != nil && died(where) {
		return ErrDied
	}
	return nil
}
