// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stopPatience bounds the wait for one thread to stop: one that sleeps
	// uninterruptibly does not.
	stopPatience = 20 * time.Millisecond
	// queuePatience bounds it for one that could run and has no processor.
	queuePatience = 300 * time.Millisecond
	// A search is not given up after few looks only because the machine is busy,
	// until it has lasted leastLooksTimes as long as it may.
	leastLooks      = 10
	leastLooksTimes = 5
	pauseFirst      = 100 * time.Microsecond
	pauseMost       = 4 * time.Millisecond
)

// run finds a safe place, makes the call there, and sees the process through
// the rest. It runs in an OS thread of its own, which ends afterwards.
func (p *plan) run(ctx context.Context, result *Result) error {
	hurry()
	p.lender = newLender()
	defer p.lender.close()
	find := p.search
	if len(p.at) > 0 {
		find = p.await
	}
	c, err := find(ctx, result)
	if c == nil || err != nil {
		return err
	}
	return c.finish(ctx, result)
}

// search stops one thread after the other until the call could be made in one.
// It ends with errHeld when this OS thread may still hold one: execve(2) waits
// for the other threads of the program to be gone, those that are traced for
// their tracer to see it, and seizing waits for execve.
func (p *plan) search(ctx context.Context, result *Result) (*conversation, error) {
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		p.sweep()
		tids, err := p.threads()
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			if p.options.among != nil && !p.options.among(tid) {
				continue
			}
			c, err := p.try(tid, result)
			switch {
			case c != nil || err != nil && !errors.Is(err, errLate) && !p.passing(err):
				return c, err
			case err != nil || len(p.late) > 0:
				return nil, p.held(ctx)
			}
		}
		clear(p.slow) // all others have had their turn
		if ctx.Err() != nil {
			return nil, noTime(ctx)
		}
		if err := p.process.Gone(); err != nil {
			return nil, err
		}
		if len(p.filters) > 0 && p.allRefused(tids) || p.over() {
			return nil, p.noPlace()
		}
		time.Sleep(pause)
	}
}

// held is why a search ends that goes on in another OS thread, unless its time
// is over.
func (p *plan) held(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return noTime(ctx)
	case p.over():
		return p.noPlace()
	}
	return errHeld
}

// noTime says that nobody waited for a place any longer: nothing was done.
func noTime(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrNoSafePoint, context.Cause(ctx))
}

// allRefused says whether the filters of all threads stand against us.
func (p *plan) allRefused(tids []int) bool {
	return !slices.ContainsFunc(tids, func(tid int) bool { return p.filters[tid] == nil })
}

// noPlace says why no thread would do.
func (p *plan) noPlace() error {
	for _, refusal := range p.filters {
		if refusal != nil {
			return refusal
		}
	}
	took := p.options.patience + time.Since(p.until)
	return fmt.Errorf("%w: %d looks in %v", ErrNoSafePoint, p.looks, took.Round(time.Millisecond))
}

// over says whether the search has had its time, and its looks.
func (p *plan) over() bool {
	late := time.Since(p.until)
	return late > 0 && p.looks >= leastLooks || late > (leastLooksTimes-1)*p.options.patience
}

// passing says whether an error is the end of one thread only.
func (p *plan) passing(err error) bool {
	return errors.Is(err, ErrInterrupted) && p.process.Alive()
}

// try looks at one thread and makes the call if it stands at a safe place.
func (p *plan) try(tid int, result *Result) (*conversation, error) {
	if p.slow[tid] || p.filters[tid] != nil {
		return nil, nil
	}
	p.looks++
	if p.spares(tid) {
		return nil, nil
	}
	p.knowStack(tid)
	t, err := p.seize(tid)
	if err != nil {
		return nil, err
	}
	result.Attempts++
	p.seen[tid] = time.Now()
	p.lender.lend(tid)
	defer p.lender.end()
	if err := p.stop(&t); err != nil {
		if errors.Is(err, ErrUnsuited) {
			return nil, errors.Join(err, t.letGo(0))
		}
		p.late[tid] = true // it stops later, or its end is still to be taken
		p.slow[tid] = true
		return nil, err
	}
	stopped := t.running // it did not stop before
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil || !p.permitted(t) || !p.suits(t, &regs) || p.passOver(tid, &regs) {
		p.letGoOn(t)
		result.Disturbed += time.Since(stopped)
		return nil, nil
	}
	result.Thread = tid
	c, err := p.callChecked(t)
	result.Stopped = time.Since(stopped)
	if errors.Is(err, ErrInterrupted) {
		p.late[tid] = true
	}
	return c, err
}

// againAfter is how long a thread is left alone that was stopped for a look in a
// call which is made again, so that its timeout begins anew.
const againAfter = 100 * time.Millisecond

// spares says whether a look from outside is enough: the thread sleeps in a call in
// which it could not do the job, or its timeout is to be spared.
func (p *plan) spares(tid int) bool {
	call, ok := currentCall(p.pid, tid)
	if !ok {
		return false
	}
	return traits[call]&borrowable == 0 && !p.anywhere ||
		traits[call]&interruptible != 0 && time.Since(p.seen[tid]) < againAfter
}

// callChecked makes the call in a stopped thread, if it executes the program still
// that was to be entered, with the same rights.
func (p *plan) callChecked(t tracee) (*conversation, error) {
	if err := p.process.Check(); err != nil {
		p.letGoOn(t)
		return nil, err
	}
	return p.call(t)
}

// stop stops a thread that is taken hold of.
func (p *plan) stop(t *tracee) error {
	until := time.Now().Add(queuePatience)
	err := t.interrupt(time.Now().Add(stopPatience))
	for errors.Is(err, errLate) && time.Now().Before(until) && runnable(p.pid, t.tid) {
		err = t.interrupt(time.Now().Add(stopPatience))
	}
	return err
}

// seize takes hold of a thread of the process. Its id may have been given to a
// thread of another process before it was seized, but not afterwards.
func (p *plan) seize(tid int) (tracee, error) {
	t := tracee{tid: tid, inner: innerID(p.pid, tid), idle: p.meanwhile, seizeOptions: p.seizeOptions}
	if err := t.seize(); err != nil {
		return t, err
	}
	if exists(p.pid, tid) && p.process.Alive() {
		return t, nil
	}
	// A thread can only be let go when it is stopped.
	if err := t.interrupt(time.Now().Add(stopPatience)); err != nil {
		p.late[tid] = true
		return t, ErrInterrupted
	}
	return t, errors.Join(ErrInterrupted, t.letGo(0))
}

// meanwhile is what is done while one thread is waited for.
func (p *plan) meanwhile() {
	p.lender.expire()
	p.sweep()
}

// sweep lets threads go on that stop later than anybody waited for, and takes
// the end of those that have ended.
func (p *plan) sweep() {
	for tid := range p.late {
		t := tracee{tid: tid}
		switch s, err := t.wait(time.Time{}); {
		case errors.Is(err, errLate):
			continue
		case err == nil && s.event == 0:
			if p.ours(t, s.signal) {
				s.signal = 0
			}
			_ = t.goOn(unix.PTRACE_CONT, s.signal) // it may have ended
			continue
		case err == nil && trapPending(p.pid, tid):
			_ = t.ptrace(unix.PTRACE_CONT, 0, 0)
			continue
		case err == nil:
			delete(p.late, tid)
			p.letGoOn(t)
			continue
		}
		delete(p.late, tid)
	}
}

// letGoOn detaches from a thread that was only looked at.
func (p *plan) letGoOn(t tracee) {
	if t.letGo(0) != nil {
		p.late[t.tid] = true // it has ended
	}
}
