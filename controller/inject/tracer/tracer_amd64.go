// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
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
	// crowdPatience bounds it for all that must not be let go before, since they may have hit
	// a breakpoint, or their calls have failed.
	crowdPatience = 10 * time.Second
	// latePatience bounds it for those that sleep, where many were told to stop.
	latePatience = 250 * time.Millisecond
	// stepPatience bounds one system call made in a thread, and a stop that must come: on a
	// crowded machine the thread has to wait for a CPU first.
	stepPatience = 3 * time.Second
)

// Tracer holds threads of one process, from one OS thread. All that it ever took hold
// of is let go, or is among the late ones and let go when it stops.
type Tracer struct {
	process     *proc.Handle
	options     uintptr      // of ptrace, for threads that are taken hold of
	late        map[int]bool // threads that it may still hold: they were told to stop, or not
	until       time.Time    // when it waits for late threads no longer; zero: it has not begun to
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
			t.settle(0)
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

// sweep lets threads go that stop later than anybody waited for, and takes
// the end of those that have ended.
func (t *Tracer) sweep() {
	for tid := range t.late {
		thread := &Thread{ID: tid}
		s, err := thread.wait(time.Time{})
		if errors.Is(err, errLate) {
			continue
		}
		gone := true // it has ended
		if err == nil {
			gone, err = t.release(thread, s)
		}
		if gone || err != nil {
			delete(t.late, tid)
		}
	}
}

// settle lets late threads go, each as soon as it stops, and returns how long they were
// stopped, altogether. One that was told to stop and has had no processor since is waited
// for: the call that it was in has failed, and is to be made again. One that sleeps may be
// in none of these; if it was told to stop it is waited for so long, and let go by the end
// of this OS thread. However often it is called, it waits for crowdPatience altogether.
func (t *Tracer) settle(sleepers time.Duration) (stopped time.Duration) {
	began := time.Now()
	if t.until.IsZero() {
		t.until = began.Add(crowdPatience)
	}
	for pause := firstPause; ; pause = rest(pause) {
		before := len(t.late)
		t.sweep()
		since := time.Since(began)
		stopped += since * time.Duration(before-len(t.late))
		if time.Now().After(t.until) || !t.isAwaited(since < sleepers) {
			return stopped
		}
	}
}

// isAwaited says whether some late thread is to be waited for: one that has stopped for
// us, and of those that were told to one that could run, or that sleeps if so asked.
func (t *Tracer) isAwaited(sleepers bool) bool {
	for tid, told := range t.late {
		if told && sleepers {
			return true
		}
		s, err := procid.ReadThread(t.process.PID(), tid)
		if err == nil && (s.State == 't' || told && s.State == 'R') {
			return true
		}
	}
	return false
}

// letGoOn detaches from a thread that was only looked at.
func (t *Tracer) letGoOn(thread *Thread) {
	if thread.letGo(0) != nil {
		t.late[thread.ID] = true // it has ended
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
	if !t.trapPending(thread.ID) {
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

// trapPending says whether a thread is about to get the signal of a breakpoint of ours.
func (t *Tracer) trapPending(tid int) bool {
	if len(t.breakpoints) == 0 {
		return false
	}
	s, err := procid.ReadThread(t.process.PID(), tid)
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
