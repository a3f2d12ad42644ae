// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/procmem"
)

const (
	// stopPatience bounds the wait for one thread to stop: one that sleeps
	// uninterruptibly does not.
	stopPatience = 20 * time.Millisecond
	// stepPatience bounds one system call made in the thread.
	stepPatience = time.Second
	pauseFirst   = 100 * time.Microsecond
	pauseMost    = 4 * time.Millisecond
)

// job is what a thread is made to do.
type job interface {
	// region is the content of the mapping.
	region(vectorBytes int) *region
	// outcome reads what is left there.
	outcome(c *conversation, result *Result) error
}

// run finds a safe place and makes the call there. It runs in an OS thread of
// its own, which ends afterwards.
func (p *plan) run(ctx context.Context, process *procid.Process) (Result, error) {
	var result Result
	until := time.Now().Add(p.options.Patience)
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		p.sweep()
		tids, err := p.threads()
		if err != nil {
			return result, err
		}
		for _, tid := range tids {
			if p.options.among != nil && !p.options.among(tid) {
				continue
			}
			done, err := p.try(tid, &result)
			if done || err != nil && !errors.Is(err, errLate) && !p.passing(err, process) {
				return result, err
			}
		}
		if err := ctx.Err(); err != nil {
			return result, err
		}
		if time.Now().After(until) {
			return result, fmt.Errorf("%w: %d looks in %v", ErrNoSafePoint, result.Attempts, p.options.Patience)
		}
		if !process.Alive() {
			return result, fmt.Errorf("pid %d: %w", p.pid, procid.GoneError(unix.ESRCH))
		}
		time.Sleep(pause)
	}
}

// passing says whether an error is the end of one thread only.
func (p *plan) passing(err error, process *procid.Process) bool {
	return errors.Is(err, ErrInterrupted) && process.Alive()
}

// try looks at one thread and makes the call if it stands at a safe place.
func (p *plan) try(tid int, result *Result) (done bool, err error) {
	if p.late[tid] {
		return false, nil
	}
	t, err := seize(tid)
	if err != nil {
		return false, err
	}
	t.idle = p.sweep
	began := time.Now()
	result.Attempts++
	if err := t.interrupt(began.Add(stopPatience)); err != nil {
		if errors.Is(err, ErrUnsuited) {
			return false, errors.Join(err, t.letGo())
		}
		if errors.Is(err, errLate) {
			p.late[tid] = true
		}
		return false, err
	}
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil || !p.suits(t, &regs) {
		t.letGoOn(p.pid)
		result.Disturbed += time.Since(began)
		return false, nil
	}
	result.Thread = tid
	err = p.call(t, result)
	result.Stopped = time.Since(began)
	return true, err
}

// sweep lets threads go on that stop later than anybody waited for.
func (p *plan) sweep() {
	for tid := range p.late {
		t := tracee{tid: tid}
		switch s, err := t.wait(time.Time{}); {
		case errors.Is(err, errLate):
			continue
		case err == nil && s.event == 0:
			_ = t.ptrace(unix.PTRACE_CONT, 0, uintptr(s.signal)) // it may have ended
			continue
		case err == nil:
			t.letGoOn(p.pid)
		}
		delete(p.late, tid)
	}
}

// letGoOn detaches; a call that returned EINTR only because we looked is made
// again.
func (t tracee) letGoOn(pid int) {
	if s, err := t.save(); err == nil {
		if fixed := s.resumed(pid, t.tid); fixed.Rip != s.regs.Rip {
			_ = unix.PtraceSetRegs(t.tid, &fixed)
		}
	}
	_ = t.letGo() // it may have ended
}

// resumed are the registers to go on with. The kernel itself restarts calls
// that say so; EINTR of a polling call is taken back, unless a signal waits
// that it would be right for.
func (s state) resumed(pid, tid int) unix.PtraceRegs {
	g := s.regs
	if inCall(&g) && int64(g.Rax) == -int64(unix.EINTR) && !signalPending(pid, tid, s.mask) {
		return afterwards(g)
	}
	return g
}

// call makes the stopped thread do the job, and puts it back.
func (p *plan) call(t tracee, result *Result) error {
	s, err := t.save()
	if err != nil {
		return errors.Join(err, t.letGo())
	}
	c := &conversation{plan: p, tracee: t, saved: s}
	err = c.make(result)
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrInterrupted) || errors.Is(err, errDied) {
		return err
	}
	return errors.Join(err, c.end())
}

// errDied is what tests make happen.
var errDied = errors.New("the tracer has died")

// conversation is one call in one thread.
type conversation struct {
	*plan
	tracee
	saved  state
	region *region
	base   uint64
	held   []unix.Signal // came meanwhile and could not be blocked
}

// onlyMarker blocks every signal but the marker.
const onlyMarker = ^(uint64(1) << (unix.SIGURG - 1))

func (c *conversation) make(result *Result) error {
	if err := c.setMask(onlyMarker); err != nil {
		return err
	}
	c.region = c.job.region(len(c.saved.extra))
	base, err := c.syscall(unix.SYS_MMAP, 0, c.region.size(), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, noSyscall, 0)
	if err != nil {
		return fmt.Errorf("map memory in the process: %w", err)
	}
	c.base = base
	c.region.place(base, c.saved)
	if err := procmem.Write(c.pid, base, c.region.data); err != nil {
		return err
	}
	if _, err := c.syscall(unix.SYS_MPROTECT, base, codeBytes, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return fmt.Errorf("make memory of the process executable: %w", err)
	}
	if err := c.execute(); err != nil {
		return err
	}
	return c.job.outcome(c, result)
}

// execute runs the stub to its marker.
func (c *conversation) execute() error {
	g := c.saved.regs
	g.Rip, g.Rsp, g.Rbx = c.base, c.base+c.region.size()-alignment, c.base+codeBytes
	g.Rbp, g.Orig_rax, g.Rax = 0, noSyscall, 0
	g.Eflags &^= 0x400 | 0x100 // direction, trap
	if err := unix.PtraceSetRegs(c.tid, &g); err != nil {
		return err
	}
	deadline := time.Now().Add(c.options.Timeout)
	if err := c.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
		return err
	}
	if c.options.died != nil && c.options.died() {
		return errDied
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
	switch signal {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP, unix.SIGABRT, unix.SIGSYS:
		return false, fmt.Errorf("%w: %v at %#x", ErrCall, unix.SignalName(signal), g.Rip)
	case unix.SIGURG:
		if g.Rip == c.base+uint64(c.region.marker) {
			return true, nil
		}
	}
	c.held = append(c.held, signal)
	return false, nil
}

// attachment is the job of loading DMLib.
type attachment struct{ *plan }

func (a attachment) region(vectorBytes int) *region { return a.attachRegion(vectorBytes) }

func (a attachment) outcome(c *conversation, result *Result) error {
	block := make([]byte, blockEnd)
	if err := c.read(c.base+codeBytes, block); err != nil {
		return err
	}
	order := binary.LittleEndian
	if order.Uint32(block[blockOutcome:]) != 1 {
		return fmt.Errorf("%w: load %s: %s", ErrCall, c.options.Library, c.text(order.Uint64(block[blockMessage:])))
	}
	if code := order.Uint32(block[blockResult:]); code != 0 {
		return fmt.Errorf("%w: attach: %w", ErrCall, attachError(unix.Errno(code)))
	}
	answer := make([]byte, requestBytes+slotBytes*len(c.slots))
	if err := c.read(c.base+uint64(c.region.requests), answer); err != nil {
		return err
	}
	base, err := libraryBase(c.pid)
	result.Slots = c.answer(answer, base)
	return err
}

// attachError says what an error of attune_dm_attach means.
func attachError(errno unix.Errno) error {
	switch errno {
	case unix.EBUSY:
		return fmt.Errorf("another controller has the process: %w", errno)
	case unix.ECONNREFUSED:
		return fmt.Errorf("the start gate did not let it in: %w", errno)
	case unix.EPERM:
		return fmt.Errorf("it runs with the rights of another user: %w", errno)
	}
	return errno
}

// text reads a C string of the process.
func (c *conversation) text(at uint64) string {
	buffer := make([]byte, 256)
	for size := len(buffer); at != 0 && size > 0; size /= 2 {
		if c.read(at, buffer[:size]) != nil {
			continue
		}
		for i, b := range buffer[:size] {
			if b == 0 {
				return string(buffer[:i])
			}
		}
		return string(buffer[:size])
	}
	return "no reason given"
}

// end takes the mapping away, puts the thread back and lets it go.
func (c *conversation) end() error {
	var errs []error
	if c.base != 0 {
		_, err := c.syscall(unix.SYS_MUNMAP, c.base, c.region.size())
		errs = append(errs, err)
	}
	for _, signal := range c.held {
		errs = append(errs, unix.Tgkill(c.pid, c.tid, signal))
	}
	c.saved.regs = c.saved.resumed(c.pid, c.tid)
	errs = append(errs, c.restore(c.saved), c.letGo())
	return errors.Join(errs...)
}

// syscall makes the thread execute one system call, by an instruction of its
// libc, and stops behind it.
func (c *conversation) syscall(number uint64, arguments ...uint64) (uint64, error) {
	var a [6]uint64
	copy(a[:], arguments)
	g := c.saved.regs
	g.Rip, g.Rax, g.Orig_rax = c.ground.gadget, number, noSyscall
	g.Rdi, g.Rsi, g.Rdx, g.R10, g.R8, g.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	if err := unix.PtraceSetRegs(c.tid, &g); err != nil {
		return 0, err
	}
	for {
		if err := c.ptrace(unix.PTRACE_SINGLESTEP, 0, 0); err != nil {
			return 0, err
		}
		s, err := c.wait(time.Now().Add(stepPatience))
		switch {
		case errors.Is(err, errLate):
			return 0, ErrTimeout
		case err != nil:
			return 0, err
		case s.event == eventStop: // a stop of the whole process began
			continue
		case s.event != 0:
			return 0, ErrInterrupted
		case s.signal != unix.SIGTRAP:
			c.held = append(c.held, s.signal)
			continue
		}
		break
	}
	if err := unix.PtraceGetRegs(c.tid, &g); err != nil {
		return 0, err
	}
	if result := int64(g.Rax); result < 0 && result > -4096 {
		return 0, unix.Errno(-result)
	}
	return g.Rax, nil
}

// libraryBase is where DMLib is loaded.
func libraryBase(pid int) (uint64, error) {
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return 0, err
	}
	for _, m := range mappings {
		if m.Offset == 0 && (objfile.Image{Path: m.Path}).Matches("libattune-dm*") {
			return m.Start, nil
		}
	}
	return 0, fmt.Errorf("%w: DMLib is not mapped", ErrCall)
}
