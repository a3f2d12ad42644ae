// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// What becomes of a thread that stands at the breakpoint of a watch.

// GoOn has it go on, and come back. It may have ended.
func (w *Watch) GoOn(t *Thread) error { return t.resume(0) }

// LetGo detaches from it, and takes the signal of its breakpoint off: left traced, it
// would get it when the tracer ends.
func (w *Watch) LetGo(t *Thread) error {
	delete(w.threads, t.ID)
	return t.LetGo()
}

// Follow has it go on to another breakpoint, which no other thread is waited for at.
func (w *Watch) Follow(t *Thread, to Breakpoint) error {
	w.narrowed = true
	w.waitAt(to)
	if err := to.Set(t.ID); err != nil {
		return err
	}
	return t.resume(0)
}

// Use calls use with it, as [Search.Find] does, if its filters permit that.
func (w *Watch) Use(t *Thread, cost *Cost, use Use) (done bool, err error) {
	if err := w.borrower.permits(t); err != nil {
		return false, errors.Join(err, w.LetGo(t))
	}
	stopped := t.running
	delete(w.threads, t.ID)
	cost.Thread = t.ID
	w.tracer.lender.lend(t.ID)
	defer w.tracer.lender.end()
	done, err = w.tracer.useChecked(t, use)
	cost.Stopped = time.Since(stopped)
	return done, err
}

// Hold keeps it standing, while the caller attends the others ([Watch.Attend]). It
// takes the thread out of the delivery of the breakpoint's signal, which would kill it
// if this process ended now, to a stop from which it would go on. It returns when the
// thread was last seen to be not stopped.
func (w *Watch) Hold(t *Thread) (since time.Time, err error) {
	since = t.running
	delete(w.threads, t.ID) // nobody else takes its stops
	if err := t.ptrace(unix.PTRACE_INTERRUPT, 0, 0); err != nil {
		return since, err
	}
	if err := t.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
		return since, err
	}
	s, err := t.wait(time.Now().Add(stepPatience))
	switch {
	case err != nil:
		return since, err
	case s.event != eventStop:
		return since, fmt.Errorf("%w: a stop by signal %d, event %d, where a trap was due", ErrInterrupted, s.signal, s.event)
	}
	return since, nil
}

// Admits says why a thread that is held may not be borrowed, or does not execute the
// program any more that was to be entered.
func (w *Watch) Admits(t *Thread) error {
	return errors.Join(w.borrower.permits(t), w.tracer.process.Check())
}

// Stands says by [ErrInterrupted] that a thread that is held has ended.
func (w *Watch) Stands(t *Thread) error {
	if _, ended, err := t.poll(); ended || err != nil && !errors.Is(err, unix.EINTR) {
		return ErrInterrupted
	}
	return nil
}

// Return has a thread that is held go on, and come back. It may have ended.
func (w *Watch) Return(t *Thread) error {
	w.threads[t.ID] = t
	return t.resume(0)
}
