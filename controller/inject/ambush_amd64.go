// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// coverEvery is how often new threads are looked for.
	coverEvery = 5 * time.Millisecond
	// crowdPatience bounds the wait for a thread that could stop and has no
	// processor, when it may have hit a breakpoint.
	crowdPatience = 10 * time.Second
)

// ambush waits until a thread comes to an address.
type ambush struct {
	*plan
	threads map[int]*watched
	here    breakpoint // the one that is waited at
	held    []int      // all threads that were ever taken hold of
	// allBlock says that up to now all threads blocked the signal, as each does
	// for a moment in pthread_create and fork.
	allBlock bool
	depth    uint64 // the stack pointer that is expected there; 0: any
}

// await makes the call where a thread comes to the plan's address.
func (p *plan) await(ctx context.Context, result *Result) (c *conversation, err error) {
	if err := p.trapIsFree(); err != nil {
		return nil, err
	}
	p.seizeOptions = unix.PTRACE_O_TRACEEXEC // the breakpoint is of this program
	a := &ambush{plan: p, threads: make(map[int]*watched)}
	if err := a.waitAt(p.at...); err != nil {
		return nil, err
	}
	defer a.end()
	until := time.Now().Add(p.options.patience)
	var next time.Time
	for {
		if now := time.Now(); now.After(next) && a.depth == 0 {
			if err := a.cover(); err != nil {
				return nil, err
			}
			next = now.Add(coverEvery)
		}
		hit, err := a.look()
		switch {
		case err != nil:
			return nil, err
		case hit != nil:
			if c, err = a.arrived(hit, result); c != nil || err != nil {
				return c, err
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: none of %d threads came to the function: %w", ErrNoSafePoint, len(a.threads), context.Cause(ctx))
		}
		if err := p.process.Gone(); err != nil {
			return nil, err
		}
		if time.Now().After(until) {
			return nil, a.nobodyCame()
		}
	}
}

// waitAt makes the breakpoints at addresses.
func (a *ambush) waitAt(addresses ...uint64) error {
	var here several
	for _, address := range addresses {
		b, err := newBreakpoint(a.process, address, a.exit)
		if err != nil {
			return err
		}
		here = append(here, b)
		a.breakpoints = append(a.breakpoints, b)
	}
	a.here = here
	return nil
}

// nobodyCame says why, after the whole time.
func (a *ambush) nobodyCame() error {
	if a.allBlock {
		return fmt.Errorf("%w: its threads block SIGTRAP, by which a breakpoint is reported", ErrUnsuited)
	}
	return fmt.Errorf("%w: none of %d threads came to the function in %v", ErrNoSafePoint, len(a.threads), a.options.patience)
}

// trapIsFree says why the process could not be sent SIGTRAP without a trace: the
// kernel would end that it is ignored.
func (p *plan) trapIsFree() error {
	s, err := procid.ReadStatus(p.pid)
	if err == nil && s.Ignored.Has(unix.SIGTRAP) {
		err = fmt.Errorf("%w: it ignores SIGTRAP, by which a breakpoint is reported", ErrUnsuited)
	}
	return err
}

// cover takes hold of threads that are not watched yet.
func (a *ambush) cover() error {
	tids := []int{a.thread}
	if a.thread == 0 {
		var err error
		if tids, err = procid.Threads(a.pid); err != nil {
			return err
		}
	}
	blocked := 0
	for _, tid := range tids {
		if a.threads[tid] != nil {
			continue
		}
		if a.blocked(tid) {
			blocked++
			continue
		}
		if err := a.add(tid); err != nil && !a.passing(err) {
			return err
		}
	}
	a.allBlock = len(a.held) == 0 && blocked == len(tids)
	return nil
}

// blocked says whether a thread blocks the signal, as those do that wait for
// signals: it would get it some time later.
func (a *ambush) blocked(tid int) bool {
	s, err := procid.ReadThread(a.pid, tid)
	return err == nil && s.Blocked.Has(unix.SIGTRAP)
}

// add watches one thread. It is traced first: who hits a breakpoint without a
// tracer is killed.
func (a *ambush) add(tid int) error {
	a.knowStack(tid)
	reaper := reapMeanwhile(a.held)
	t, err := a.seize(tid)
	for _, ended := range reaper.stop() {
		a.forget(ended)
	}
	if err != nil {
		return err
	}
	a.held = append(a.held, tid)
	t.idle = a.attend
	w := &watched{tracee: t}
	a.threads[tid] = w
	w.running = time.Now()
	return a.here.set(tid)
}

// forget is for a thread whose end has been taken.
func (a *ambush) forget(tid int) {
	a.here.unset(tid)
	delete(a.threads, tid)
}

// arrived is what is done when a thread has come to the address: the call, or
// at the entry of a function whose exit is meant, a breakpoint there.
func (a *ambush) arrived(w *watched, result *Result) (*conversation, error) {
	stopped := w.running
	result.Attempts++
	a.looks++
	if !a.here.reached(w.tid, a.depth) {
		return nil, w.resume(0) // a recursive call's return, or another program
	}
	if a.visit != nil {
		return a.visited(w, stopped, result)
	}
	a.here.disable()
	if a.exit && a.depth == 0 && !a.here.atExit() {
		if err := a.followToExit(w); err != nil {
			return nil, errors.Join(err, a.letGoAt(w))
		}
		return nil, nil
	}
	if !a.permitted(w.tracee) {
		return nil, errors.Join(a.noPlace(), a.letGoAt(w))
	}
	delete(a.threads, w.tid)
	result.Thread = w.tid
	a.lender.lend(w.tid)
	defer a.lender.end()
	c, err := a.callChecked(w.tracee)
	result.Stopped = time.Since(stopped)
	return c, err
}

// letGoAt detaches from a thread that is stopped, and takes the signal of its
// breakpoint off: left traced, it would get it when the tracer ends.
func (a *ambush) letGoAt(w *watched) error {
	delete(a.threads, w.tid)
	return w.letGo(0)
}

// followToExit lets the thread, which is at the function's entry, run until it returns.
func (a *ambush) followToExit(w *watched) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(w.tid, &regs); err != nil {
		return fmt.Errorf("registers of thread %d: %w", w.tid, err)
	}
	word := make([]byte, 8)
	if err := a.read(regs.Rsp, word); err != nil {
		return err
	}
	a.depth = regs.Rsp + 8
	if err := a.waitAt(binary.LittleEndian.Uint64(word)); err != nil {
		return err
	}
	if err := a.here.set(w.tid); err != nil {
		return err
	}
	return w.resume(0)
}

// look serves one stop of any thread; the thread, if it is at a breakpoint.
func (a *ambush) look() (*watched, error) {
	tid, status, err := a.next()
	if err != nil || tid == 0 {
		now := time.Now()
		for _, w := range a.threads {
			w.running = now
		}
		rest(mostPause)
		return nil, nil //nolint:nilerr // nobody is left, or it was interrupted
	}
	w := a.threads[tid]
	switch {
	case int(status)>>16 == unix.PTRACE_EVENT_EXEC:
		return nil, errors.Join(ErrInterrupted, a.letGoAt(&watched{tracee{tid: tid}}))
	case w == nil:
		a.stray(tid, status)
		return nil, nil
	case !status.Stopped():
		a.forget(tid)
		return nil, nil
	case int(status)>>16 == 0 && a.ours(w.tracee, status.StopSignal()):
		return w, nil
	}
	return nil, w.pass(status)
}

// next is nextStatus for the threads of the program. A child of this process that
// has ended, and that whoever started it has not asked for yet, stands before all
// other ends: then each thread is asked by itself.
func (a *ambush) next() (tid int, status unix.WaitStatus, err error) {
	tid, status, err = nextStatus(unix.P_ALL, 0)
	if _, late := a.late[tid]; err != nil || tid == 0 || status.Stopped() || late || a.threads[tid] != nil {
		return tid, status, err
	}
	for _, tids := range []iter.Seq[int]{maps.Keys(a.threads), maps.Keys(a.late)} {
		for tid := range tids {
			if got, status, err := nextStatus(unix.P_PID, tid); err == nil && got == tid {
				return tid, status, nil
			}
		}
	}
	return 0, 0, nil
}

// stray lets a thread go that was told to stop and did so too late.
func (a *ambush) stray(tid int, status unix.WaitStatus) {
	if !status.Stopped() {
		delete(a.late, tid)
		return
	}
	if gone, _ := a.release(tracee{tid: tid}, stop{signal: status.StopSignal(), event: int(status) >> 16}); gone {
		delete(a.late, tid)
	}
}

// attend serves the other threads while one makes the call.
func (a *ambush) attend() {
	for tid, w := range a.threads {
		got, status, err := nextStatus(unix.P_PID, tid)
		if err != nil || got != tid {
			continue
		}
		switch {
		case !status.Stopped():
			a.forget(tid)
		case int(status)>>16 == 0 && a.ours(w.tracee, status.StopSignal()):
			_ = w.resume(0) // it came there as well
		default:
			_ = w.pass(status)
		}
	}
	a.meanwhile()
}

// end lets all threads go. The breakpoints go first; a thread that has hit one
// already is let go when it has taken its signal.
func (a *ambush) end() {
	a.here.disable()
	for _, w := range a.threads {
		_ = w.ptrace(unix.PTRACE_INTERRUPT, 0, 0) // it may have ended
	}
	now := time.Now()
	for _, w := range a.threads {
		if err := a.leave(w, now.Add(stepPatience), now.Add(crowdPatience)); errors.Is(err, errLate) {
			a.late[w.tid] = true
		}
	}
	a.sweep()
}
