// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	process *procid.Process
	threads map[int]*watched
	held    []int // all threads that were ever taken hold of
	// allBlock says that up to now all threads blocked the signal, as each does
	// for a moment in pthread_create and fork.
	allBlock bool
	depth    uint64 // the stack pointer that is expected there; 0: any
	at       uint64
}

// await makes the call where a thread comes to the plan's address.
func (p *plan) await(ctx context.Context, process *procid.Process, result *Result) (c *conversation, err error) {
	if err := p.trapIsFree(); err != nil {
		return nil, err
	}
	a := &ambush{plan: p, process: process, threads: make(map[int]*watched), at: p.at}
	defer a.end()
	until := time.Now().Add(p.options.Patience)
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
		if !process.Alive() {
			return nil, fmt.Errorf("pid %d: %w", p.pid, procid.GoneError(unix.ESRCH))
		}
		if time.Now().After(until) {
			return nil, a.nobodyCame()
		}
	}
}

// nobodyCame says why, after the whole time.
func (a *ambush) nobodyCame() error {
	if a.allBlock {
		return fmt.Errorf("%w: its threads block SIGTRAP, by which a breakpoint is reported", ErrUnsuited)
	}
	return fmt.Errorf("%w: none of %d threads came to the function in %v", ErrNoSafePoint, len(a.threads), a.options.Patience)
}

// trapIsFree says why the process could not be sent SIGTRAP without a trace: the
// kernel would end that it is ignored.
func (p *plan) trapIsFree() error {
	set, err := signalSet(p.pid, p.pid, "SigIgn")
	if err == nil && set&trapBit != 0 {
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
		if err := a.add(tid); err != nil && !a.passing(err, a.process) {
			return err
		}
	}
	a.allBlock = len(a.held) == 0 && blocked == len(tids)
	return nil
}

// blocked says whether a thread blocks the signal, as those do that wait for
// signals: it would get it some time later.
func (a *ambush) blocked(tid int) bool {
	set, err := signalSet(a.pid, tid, "SigBlk")
	return err == nil && set&trapBit != 0
}

// add watches one thread. It is traced first: who hits a breakpoint without a
// tracer is killed.
func (a *ambush) add(tid int) error {
	a.knowStack(tid)
	reaper := reapMeanwhile(a.held)
	t, err := a.seize(tid, a.process)
	for _, ended := range reaper.stop() {
		a.forget(ended)
	}
	if err != nil {
		return err
	}
	a.held = append(a.held, tid)
	t.idle = a.attend
	w := &watched{tracee: t, event: -1}
	a.threads[tid] = w
	w.running = time.Now()
	w.event, err = openBreakpoint(tid, a.at)
	return err
}

// forget is for a thread whose end has been taken.
func (a *ambush) forget(tid int) {
	if w := a.threads[tid]; w != nil {
		w.closeEvent()
		delete(a.threads, tid)
	}
}

// arrived is what is done when a thread has come to the address: the call, or
// at the entry of a function whose exit is meant, a breakpoint there.
func (a *ambush) arrived(w *watched, result *Result) (*conversation, error) {
	stopped := w.running
	result.Attempts++
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(w.tid, &regs); err != nil || regs.Rip != a.at || a.depth != 0 && regs.Rsp != a.depth {
		return nil, w.goOn(0) // a recursive call's return, or another program
	}
	a.closeAll()
	if a.exit && a.depth == 0 {
		if err := a.followToExit(w, &regs); err != nil {
			return nil, errors.Join(err, a.letGoAt(w))
		}
		return nil, nil
	}
	if !a.permitted(w.tracee) {
		return nil, errors.Join(a.noPlace(result.Attempts), a.letGoAt(w))
	}
	delete(a.threads, w.tid)
	result.Thread = w.tid
	a.lender.lend(w.tid)
	defer a.lender.end()
	c, err := a.call(w.tracee)
	result.Stopped = time.Since(stopped)
	return c, err
}

// letGoAt detaches from a thread that has been stopped by its breakpoint, and
// takes the signal off: left traced, it would get it when the tracer ends.
func (a *ambush) letGoAt(w *watched) error {
	delete(a.threads, w.tid)
	w.closeEvent()
	return w.letGo()
}

// followToExit lets the thread run until the function returns.
func (a *ambush) followToExit(w *watched, regs *unix.PtraceRegs) (err error) {
	word := make([]byte, 8)
	if err := a.read(regs.Rsp, word); err != nil {
		return err
	}
	a.at, a.depth = binary.LittleEndian.Uint64(word), regs.Rsp+8
	if w.event, err = openBreakpoint(w.tid, a.at); err != nil {
		return err
	}
	return w.goOn(0)
}

// look serves one stop of any thread; the thread, if it is at a breakpoint.
func (a *ambush) look() (*watched, error) {
	tid, status, err := nextStatus(unix.P_ALL, 0)
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
	case w == nil:
		a.stray(tid, status)
		return nil, nil
	case !status.Stopped():
		a.forget(tid)
		return nil, nil
	case int(status)>>16 == 0 && w.ours(status.StopSignal()):
		return w, nil
	}
	return nil, w.pass(status)
}

// stray lets a thread go that was told to stop and did so too late.
func (a *ambush) stray(tid int, status unix.WaitStatus) {
	if !status.Stopped() {
		delete(a.late, tid)
		return
	}
	if gone, _ := (tracee{tid: tid}).release(a.pid, stop{signal: status.StopSignal(), event: int(status) >> 16}); gone {
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
		case int(status)>>16 == 0 && w.ours(status.StopSignal()):
			_ = w.goOn(0) // it came there as well
		default:
			_ = w.pass(status)
		}
	}
	a.meanwhile()
}

func (a *ambush) closeAll() {
	for _, w := range a.threads {
		w.closeEvent()
	}
}

// end lets all threads go. The breakpoints go first; a thread that has hit one
// already is let go when it has taken its signal.
func (a *ambush) end() {
	a.closeAll()
	for _, w := range a.threads {
		_ = w.ptrace(unix.PTRACE_INTERRUPT, 0, 0) // it may have ended
	}
	now := time.Now()
	for _, w := range a.threads {
		if err := w.leave(a.pid, now.Add(stepPatience), now.Add(crowdPatience)); errors.Is(err, errLate) {
			a.late[w.tid] = true
		}
	}
	a.sweep()
}
