// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// coverEvery is how often new threads are looked for.
const coverEvery = 5 * time.Millisecond

// Watch traces the threads of a process, which run, until one comes to a breakpoint.
type Watch struct {
	tracer   *Tracer
	borrower *Borrower
	thread   int             // the only one that is watched; 0: all
	threads  map[int]*Thread // that run, or stand at a breakpoint
	here     Breakpoint      // the one that is waited at
	narrowed bool            // no other threads are looked for any more
	held     []int           // all threads that were ever taken hold of
	// allBlock says that up to now all threads blocked the signal, as each does
	// for a moment in pthread_create and fork.
	allBlock bool
}

// Watch begins to watch one thread of the process, 0 for all, for those that come to a
// breakpoint; Wait takes hold of them. The caller calls End, and closes the breakpoint
// not before that.
func (t *Tracer) Watch(b *Borrower, thread int, at Breakpoint) *Watch {
	t.options = unix.PTRACE_O_TRACEEXEC // the breakpoint is of this program
	t.lender = newLender()
	w := &Watch{tracer: t, borrower: b, thread: thread, threads: make(map[int]*Thread)}
	w.waitAt(at)
	return w
}

func (w *Watch) waitAt(b Breakpoint) {
	w.here = b
	w.tracer.breakpoints = append(w.tracer.breakpoints, b)
}

// Wait calls arrived with each thread that is stopped by the breakpoint, until that is
// done or fails. arrived has it go on or lets it go, by methods of the watch. Without
// one, Wait returns [ErrNoSafePoint], the process' end, or why there is no breakpoint.
func (w *Watch) Wait(ctx context.Context, patience time.Duration, arrived func(*Thread) (done bool, err error)) error {
	until := time.Now().Add(patience)
	var next time.Time
	for {
		if now := time.Now(); now.After(next) && !w.narrowed {
			if err := w.cover(); err != nil {
				return err
			}
			next = now.Add(coverEvery)
		}
		hit, err := w.look()
		if err == nil && hit != nil {
			var done bool
			if done, err = arrived(hit); done {
				return err
			}
		}
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: none of %d threads came to the function: %w", ErrNoSafePoint, len(w.threads), context.Cause(ctx))
		}
		if err := w.tracer.process.Gone(); err != nil {
			return err
		}
		if time.Now().After(until) {
			return w.nobodyCame(patience)
		}
	}
}

// nobodyCame says why, after the whole time.
func (w *Watch) nobodyCame(patience time.Duration) error {
	if w.allBlock {
		return fmt.Errorf("%w: its threads block SIGTRAP, by which a breakpoint is reported", ErrUnsuited)
	}
	return fmt.Errorf("%w: none of %d threads came to the function in %v", ErrNoSafePoint, len(w.threads), patience)
}

// cover takes hold of threads that are not watched yet. [ErrNoSafePoint] if the only one
// that is watched has ended.
func (w *Watch) cover() error {
	tids := []int{w.thread}
	if w.thread == 0 {
		var err error
		if tids, err = procid.Threads(w.tracer.process.PID()); err != nil {
			return err
		}
	}
	blocked := 0
	for _, tid := range tids {
		if w.threads[tid] != nil {
			continue
		}
		if w.blocked(tid) {
			blocked++
			continue
		}
		switch err := w.add(tid); {
		case err == nil:
		case !w.tracer.passing(err):
			return err
		case w.thread != 0:
			return fmt.Errorf("%w: thread %d has ended", ErrNoSafePoint, w.thread)
		}
	}
	w.allBlock = len(w.held) == 0 && blocked == len(tids)
	return nil
}

// blocked says whether a thread blocks the signal, as those do that wait for
// signals: it would get it some time later.
func (w *Watch) blocked(tid int) bool {
	s, err := procid.ReadThread(w.tracer.process.PID(), tid)
	return err == nil && s.Blocked.Has(unix.SIGTRAP)
}

// add watches one thread. It is traced first: who hits a breakpoint without a
// tracer is killed.
func (w *Watch) add(tid int) error {
	w.borrower.lifelines.know(tid)
	reaper := reapMeanwhile(w.held)
	t, err := w.tracer.seize(tid)
	for _, ended := range reaper.stop() {
		w.forget(ended)
	}
	if err != nil {
		return err
	}
	w.held = append(w.held, tid)
	t.idle = w.Attend
	t.running = time.Now()
	w.threads[tid] = t
	return w.here.Set(tid)
}

// forget is for a thread whose end has been taken.
func (w *Watch) forget(tid int) {
	w.here.Unset(tid)
	delete(w.threads, tid)
}

// look serves one stop of any thread; the thread, if it is at a breakpoint.
func (w *Watch) look() (*Thread, error) {
	tid, status, err := w.next()
	if err != nil || tid == 0 {
		now := time.Now()
		for _, t := range w.threads {
			t.running = now
		}
		rest(mostPause)
		return nil, nil //nolint:nilerr // nobody is left, or it was interrupted
	}
	t := w.threads[tid]
	switch {
	case int(status)>>16 == unix.PTRACE_EVENT_EXEC:
		delete(w.threads, tid)
		return nil, errors.Join(ErrInterrupted, (&Thread{ID: tid}).LetGo())
	case t == nil:
		w.stray(tid, status)
		return nil, nil
	case !status.Stopped():
		w.forget(tid)
		return nil, nil
	case int(status)>>16 == 0 && w.tracer.ours(t, status.StopSignal()):
		return t, nil
	}
	return nil, t.pass(status)
}

// next is nextStatus for the threads of the program. A child of this process that
// has ended, and that whoever started it has not asked for yet, stands before all
// other ends: then each thread is asked by itself.
func (w *Watch) next() (tid int, status unix.WaitStatus, err error) {
	tid, status, err = nextStatus(unix.P_ALL, 0)
	if _, late := w.tracer.late[tid]; err != nil || tid == 0 || status.Stopped() || late || w.threads[tid] != nil {
		return tid, status, err
	}
	for _, tids := range []iter.Seq[int]{maps.Keys(w.threads), maps.Keys(w.tracer.late)} {
		for tid := range tids {
			if got, status, err := nextStatus(unix.P_PID, tid); err == nil && got == tid {
				return tid, status, nil
			}
		}
	}
	return 0, 0, nil
}

// stray lets a thread go that was told to stop and did so too late.
func (w *Watch) stray(tid int, status unix.WaitStatus) {
	if !status.Stopped() {
		delete(w.tracer.late, tid)
		return
	}
	s := stop{signal: status.StopSignal(), event: int(status) >> 16}
	if gone, _ := w.tracer.release(&Thread{ID: tid}, s); gone {
		delete(w.tracer.late, tid)
	}
}

// Attend serves the other threads while one stands.
func (w *Watch) Attend() {
	for tid, t := range w.threads {
		got, status, err := nextStatus(unix.P_PID, tid)
		if err != nil || got != tid {
			continue
		}
		switch {
		case !status.Stopped():
			w.forget(tid)
		case int(status)>>16 == 0 && w.tracer.ours(t, status.StopSignal()):
			_ = t.resume(0) // it came there as well
		default:
			_ = t.pass(status)
		}
	}
	w.tracer.meanwhile()
}

// End lets all threads go, and returns how long they were stopped for that, altogether.
// The breakpoint is disabled before; a thread that has hit it already is let go when it
// has taken its signal.
func (w *Watch) End() (stopped time.Duration) {
	for tid := range w.threads {
		w.tracer.late[tid] = !stays(w.tracer.process.PID(), tid)
	}
	for tid, t := range w.threads { // none stands while others are looked at
		if w.tracer.late[tid] {
			_ = t.ptrace(unix.PTRACE_INTERRUPT, 0, 0) // it may have ended
		}
	}
	return w.tracer.settle(latePatience)
}
