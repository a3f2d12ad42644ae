// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// errDied is what tests make happen.
var errDied = errors.New("the tracer has died")

// conversation is one call in one thread that is borrowed, and what follows.
type conversation struct {
	talk
	tracee
	saved    state
	lifeline lifeline
	region   *region
	held     []unix.Signal // came meanwhile and could not be blocked
	besides  func()        // called while the tracer waits for the call; may be nil
}

// The signals of faults. The kernel takes the program's handler away, for all
// threads, if one is blocked in the thread that has the fault.
const faults = 1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) |
	1<<(unix.SIGFPE-1) | 1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1)

// borrowedMask blocks every signal but the marker and faults.
const borrowedMask = ^(uint64(1)<<(unix.SIGURG-1) | faults)

// call makes the stopped thread load DMLib, or start a thread that will, and
// puts it back.
func (p *plan) call(t tracee) (*conversation, error) {
	s, err := t.save(p.area)
	if err != nil {
		return nil, errors.Join(err, t.letGo(0))
	}
	c := &conversation{talk: talk{plan: p}, tracee: t, saved: s, besides: t.idle}
	err = c.make()
	switch {
	case errors.Is(err, ErrTimeout), errors.Is(err, ErrInterrupted), errors.Is(err, errDied):
		return nil, err
	case err != nil:
		return nil, errors.Join(err, c.end(true))
	}
	err = c.end(!c.apart())
	return c, err
}

// apart says whether a thread of its own does the work: the mapping is its.
func (c *conversation) apart() bool { return c.calls.create != 0 }

// open has the thread map the memory for the call.
func (c *conversation) open() error {
	if c.single() {
		c.calls.create = 0
	}
	c.secure()
	c.region = c.newRegion(len(c.saved.extra))
	base, err := c.syscall(unix.SYS_MMAP, c.room, c.region.size(), unix.PROT_READ|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, noSyscall, 0)
	if err != nil {
		return fmt.Errorf("map memory in the process: %w", err)
	}
	c.base, c.at, c.requestAt = base, base+uint64(c.region.entry), uint64(c.region.request-c.region.entry)
	return nil
}

func (c *conversation) make() error {
	if err := c.open(); err != nil {
		return err
	}
	err := c.attempt()
	if err == nil && c.apart() && c.answer.step == abi.EntryThread {
		c.calls.create = 0 // a limit on threads, or a class of scheduling that has none
		err = c.attempt()
	}
	return err
}

// attempt writes the mapping's content and has it executed to its marker.
func (c *conversation) attempt() error {
	c.region.place(c.base, c.plan, c.saved)
	if err := c.process.Write(c.base, c.region.data); err != nil {
		return fmt.Errorf("write memory of the process: %w", err)
	}
	if !c.apart() {
		c.idle = func() {
			c.meanwhile()
			if c.besides != nil {
				c.besides()
			}
			_ = c.look(c.tid)
		}
	}
	if err := c.execute(); err != nil {
		return err
	}
	if !c.listen() {
		return ErrInterrupted
	}
	switch {
	case c.apart():
		return nil
	case c.answer.started():
		return c.collect()
	}
	return fmt.Errorf("%w: its memory could not be made writable", ErrCall)
}

// Bits of the flags register.
const (
	trapFlag      = 0x100
	directionFlag = 0x400
)

// execute runs the code to its marker, beginning with mprotect(2).
func (c *conversation) execute() error {
	g := c.saved.regs
	g.Rip, g.Rsp, g.Rbx = c.base+c.region.start(), c.base+c.region.size()-alignment, c.at
	g.Rbp, g.Orig_rax = 0, noSyscall
	g.Rax, g.Rdi, g.Rsi, g.Rdx = unix.SYS_MPROTECT, c.at, c.region.size()-uint64(c.region.entry), unix.PROT_READ|unix.PROT_WRITE
	g.Eflags &^= directionFlag | trapFlag
	if err := unix.PtraceSetRegs(c.tid, &g); err != nil {
		return err
	}
	deadline := time.Now().Add(c.options.timeout)
	if err := c.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
		return err
	}
	if err := c.dies("in the code"); err != nil {
		return err
	}
	for {
		s, err := c.wait(deadline)
		if errors.Is(err, errLate) {
			return ErrTimeout
		}
		if err != nil {
			return err
		}
		if s.event == 0 {
			if arrived, err := c.signalled(s.signal); arrived || err != nil {
				return err
			}
		} else if s.event != eventStop {
			return ErrInterrupted
		}
		if err := c.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
			return err
		}
	}
}

// signalled deals with a signal during the call: the marker, a fault, or one
// that is kept for later.
func (c *conversation) signalled(signal unix.Signal) (arrived bool, err error) {
	var g unix.PtraceRegs
	if err := unix.PtraceGetRegs(c.tid, &g); err != nil {
		return false, err
	}
	switch {
	case signal == unix.SIGABRT || faults>>(signal-1)&1 != 0 && c.byKernel():
		return false, fmt.Errorf("%w: %v at %#x", ErrCall, unix.SignalName(signal), g.Rip)
	case signal == unix.SIGURG && g.Rip == c.base+c.region.marker():
		return true, nil
	}
	c.held = append(c.held, signal)
	return false, nil
}

// end puts the thread back and lets it go; the mapping is taken away if nobody
// else needs it.
func (c *conversation) end(unmap bool) error {
	var errs []error
	if c.base != 0 && unmap {
		_, err := c.syscall(unix.SYS_MUNMAP, c.base, c.region.size())
		if errors.Is(err, errDied) {
			return err
		}
		errs = append(errs, err)
	}
	for _, signal := range c.held {
		errs = append(errs, unix.Tgkill(c.pid, c.tid, signal))
	}
	err := c.putBack()
	if errors.Is(err, errDied) {
		return err
	}
	return errors.Join(append(errs, err, c.letGo(0))...)
}

// putBack is the opposite of save. The registers come last: until then the
// lifeline, or the code's own frame, restores the rest.
func (c *conversation) putBack() error {
	err := errors.Join(c.setVectors(c.saved.extra), c.setMask(c.saved.mask))
	if err := c.dies("with signals free again"); err != nil {
		return err
	}
	if e := unix.PtraceSetRegs(c.tid, &c.saved.regs); e != nil {
		return errors.Join(err, e)
	}
	c.unsecure()
	return err
}

// finish waits for the thread that does the work, if there is one, and reads
// what came of it.
func (c *conversation) finish(ctx context.Context, result *Result) error {
	if c.apart() {
		if err := c.attend(ctx); err != nil {
			return err
		}
		result.Helper = c.helper
	}
	if c.code != nil {
		c.value = c.answer.value
		return nil
	}
	return c.outcome(result)
}
