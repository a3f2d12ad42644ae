// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// stopPatience bounds the wait for one thread to stop: one that sleeps
	// uninterruptibly does not.
	stopPatience = 20 * time.Millisecond
	// queuePatience bounds it for one that could run and has no processor.
	queuePatience = 300 * time.Millisecond
	// crowdPatience bounds it for one that must not be let go before, since it may have hit a
	// breakpoint, or its call has failed.
	crowdPatience = 10 * time.Second
	// stepPatience bounds one system call made in a thread, and a stop that must come.
	stepPatience = time.Second
)

// Tracer holds threads of one process, from one OS thread. All that it ever took hold
// of is let go, or is among the late ones and let go when it stops.
type Tracer struct {
	process     *proc.Handle
	options     uintptr      // of ptrace, for threads that are taken hold of
	late        map[int]bool // threads that it may still hold
	lender      *lender      // of priority, while a thread is stopped; nil lends nothing
	breakpoints []Breakpoint // whose signal no thread is let go with
}

// Breakpoint has the kernel send SIGTRAP to threads that come to an address.
type Breakpoint interface {
	// Set has a thread, which is traced, stopped whenever it comes there.
	Set(tid int) error
	// Unset is for a thread that has ended.
	Unset(tid int)
	// Stopped says whether a signal that a thread is stopped by is that of the
	// breakpoint.
	Stopped(t *Thread, signal unix.Signal) bool
}

// Run calls a function with a tracer in an OS thread that ends afterwards, and returns
// what the function does. It is called again, with a new tracer, where it cannot go on
// before the kernel has let go of all threads: execve(2) waits for the other threads of
// the program to be gone, those that are traced for their tracer to see it, and seizing
// waits for execve.
func Run(process *proc.Handle, f func(*Tracer) error) (err error) {
	for err = errHeld; errors.Is(err, errHeld); {
		onOwnThread(func() {
			hurry()
			t := &Tracer{process: process, late: make(map[int]bool)}
			defer func() { t.lender.close() }()
			err = f(t)
			t.settle()
		})
	}
	return err
}

// passing says whether an error is the end of one thread only.
func (t *Tracer) passing(err error) bool {
	return errors.Is(err, ErrInterrupted) && t.process.Alive()
}

// seize takes hold of a thread of the process. Its id may have been given to a
// thread of another process before it was seized, but not afterwards.
func (t *Tracer) seize(tid int) (*Thread, error) {
	pid := t.process.PID()
	thread := &Thread{ID: tid, Inner: innerID(pid, tid), idle: t.meanwhile}
	if err := thread.seize(t.options); err != nil {
		return nil, err
	}
	if Exists(pid, tid) && t.process.Alive() {
		return thread, nil
	}
	// A thread can only be let go when it is stopped.
	if err := thread.interrupt(time.Now().Add(stopPatience)); err != nil {
		t.late[tid] = true
		return nil, ErrInterrupted
	}
	return nil, errors.Join(ErrInterrupted, thread.letGo(0))
}

// Use is what is done with a thread that stands. It lets the thread go, and says whether
// it is done.
type Use func(*Thread) (done bool, err error)

// useChecked calls use with a thread that stands, if it executes the program still that
// was to be entered, with the same rights.
func (t *Tracer) useChecked(thread *Thread, use Use) (done bool, err error) {
	if err := t.process.Check(); err != nil {
		t.letGoOn(thread)
		return false, err
	}
	return use(thread)
}

// stop stops a thread that is taken hold of.
func (t *Tracer) stop(thread *Thread) error {
	until := time.Now().Add(queuePatience)
	err := thread.interrupt(time.Now().Add(stopPatience))
	for errors.Is(err, errLate) && time.Now().Before(until) && runnable(t.process.PID(), thread.ID) {
		err = thread.interrupt(time.Now().Add(stopPatience))
	}
	return err
}

// meanwhile is what is done while one thread is waited for.
func (t *Tracer) meanwhile() {
	t.lender.expire()
	t.sweep()
}

// sweep lets threads go on that stop later than anybody waited for, and takes
// the end of those that have ended.
func (t *Tracer) sweep() {
	for tid := range t.late {
		thread := &Thread{ID: tid}
		switch s, err := thread.wait(time.Time{}); {
		case errors.Is(err, errLate):
			continue
		case err == nil && s.event == 0:
			if t.ours(thread, s.signal) {
				s.signal = 0
			}
			_ = thread.goOn(unix.PTRACE_CONT, s.signal) // it may have ended
			continue
		case err == nil && trapPending(t.process.PID(), tid):
			_ = thread.ptrace(unix.PTRACE_CONT, 0, 0)
			continue
		case err == nil:
			delete(t.late, tid)
			t.letGoOn(thread)
			continue
		}
		delete(t.late, tid)
	}
}

// settle waits for threads that were told to stop and have had no processor since: the
// call that such a thread was in has failed, and is to be made again. One that sleeps
// is in none of these, and is let go by the end of this OS thread.
func (t *Tracer) settle() {
	deadline := time.Now().Add(crowdPatience)
	for pause := firstPause; time.Now().Before(deadline); pause = rest(pause) {
		t.sweep()
		if !slices.ContainsFunc(slices.Collect(maps.Keys(t.late)), t.awake) {
			return
		}
	}
}

// awake says whether a thread could run, or has stopped for us.
func (t *Tracer) awake(tid int) bool {
	s, err := procid.ReadThread(t.process.PID(), tid)
	return err == nil && (s.State == 'R' || s.State == 't')
}

// letGoOn detaches from a thread that was only looked at.
func (t *Tracer) letGoOn(thread *Thread) {
	if thread.letGo(0) != nil {
		t.late[thread.ID] = true // it has ended
	}
}

// leave detaches from a thread that was told to stop. One that could run and has
// no processor is waited for up to the second deadline.
func (t *Tracer) leave(thread *Thread, deadline, latest time.Time) error {
	thread.idle = nil
	for {
		s, err := thread.wait(deadline)
		if errors.Is(err, errLate) && time.Now().Before(latest) && runnable(t.process.PID(), thread.ID) {
			deadline = time.Now().Add(stopPatience)
			continue
		}
		if err != nil {
			return err
		}
		if gone, err := t.release(thread, s); gone || err != nil {
			return err
		}
	}
}

// release detaches from a thread that has stopped, unless our breakpoint's signal
// is still to come, which would kill it untraced: then it goes on to that.
func (t *Tracer) release(thread *Thread, s stop) (gone bool, err error) {
	if s.event == 0 {
		if t.ours(thread, s.signal) {
			s.signal = 0
		}
		return true, thread.letGo(s.signal)
	}
	if !trapPending(t.process.PID(), thread.ID) {
		return true, thread.letGo(0)
	}
	err = thread.ptrace(unix.PTRACE_CONT, 0, 0)
	return errors.Is(err, ErrInterrupted), err
}

// ours says whether a signal that a thread is stopped by is that of a breakpoint of
// ours.
func (t *Tracer) ours(thread *Thread, signal unix.Signal) bool {
	return slices.ContainsFunc(t.breakpoints, func(b Breakpoint) bool { return b.Stopped(thread, signal) })
}

// trapPending says whether a thread is about to get the signal of a breakpoint.
func trapPending(pid, tid int) bool {
	s, err := procid.ReadThread(pid, tid)
	return err == nil && s.Pending.Has(unix.SIGTRAP)
}

// faulting says whether a thread that stands has had a fault and not been told yet: what
// it would be told later, or by anybody but the kernel, is not what its handler expects.
func (t *Tracer) faulting(tid int, regs *unix.PtraceRegs) bool {
	if InCall(regs) {
		return false
	}
	s, err := procid.ReadThread(t.process.PID(), tid)
	return err != nil || s.Pending&faults != 0
}

// TrapIsFree says why a process could not be sent SIGTRAP without a trace: the
// kernel would end that it is ignored.
func TrapIsFree(pid int) error {
	s, err := procid.ReadStatus(pid)
	if err == nil && s.Ignored.Has(unix.SIGTRAP) {
		err = fmt.Errorf("%w: it ignores SIGTRAP, by which a breakpoint is reported", ErrUnsuited)
	}
	return err
}
