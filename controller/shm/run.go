// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
)

// claimedGrace is how long Run waits, after its context has ended, for a command that a
// thread is executing.
const claimedGrace = 100 * time.Millisecond

// Executor has commands executed. Run may be called at any time, several at once.
type Executor struct {
	mailbox    *Mailbox
	attendance attendance
	guard      func() error // asked before a command; may be nil
}

// SetAttendant says who helps where no thread comes by a safe point: a program
// that only computes has none. It is called before any Run.
func (e *Executor) SetAttendant(a Attendant) { e.attendance.attendant = a }

// SetGuard says who is asked before each command is posted, and refuses it by an
// error. It is called before any Run.
func (e *Executor) SetGuard(guard func() error) { e.guard = guard }

// Run posts a command and waits for its result. The result is valid if err is
// nil or an Errno with which the application refused. When ctx ends first the
// command is taken back (ErrNoSafePoint, it never runs) unless a thread is
// executing it; then Run waits a moment longer and reports ErrOutcomeUnknown.
// Safe to call at any time, several at once.
func (e *Executor) Run(ctx context.Context, c Command) (Result, error) {
	start := time.Now()
	if err := e.guarded(); err != nil {
		return Result{}, err
	}
	attended := e.attendance.attendant != nil && c.attendable()
	posted := c
	if attended {
		posted.At |= AtStopped
	}
	ticket, err := e.mailbox.Post(posted)
	if err != nil {
		return Result{}, err
	}
	result, done, unattended := e.waitFor(ctx, ticket, attended)
	cancelled := !done && e.mailbox.Cancel(ticket)
	if !done && !cancelled {
		result, done = e.waitInGrace(ctx, ticket)
		cancelled = !done && e.mailbox.Cancel(ticket) // a thread for which it is not gave it back
	}
	if cancelled {
		return Result{}, errors.Join(fmt.Errorf("%w: no thread%s entered a watched function (%s) within %s: %w",
			ErrNoSafePoint, ofThread(c.Thread), c.At, time.Since(start).Round(time.Millisecond), context.Cause(ctx)), unattended)
	}
	if !done {
		e.mailbox.abandon(ticket)
		return Result{}, e.outcome()
	}
	switch result.Errno {
	case 0:
		return result, nil
	case unix.EPERM: // no command answers that
		return result, ErrConfined
	}
	return result, fmt.Errorf("in the application: %w", result.Errno)
}

const (
	// busyTries bounds how often RunRetrying posts a command.
	busyTries = 20
	busyPause = 5 * time.Millisecond
)

// RunRetrying is Run for a command that the application refuses for now (EBUSY): another
// thread has made the page of a GOT slot writable, or the loader is at work. It is
// posted again, for 100 ms or until ctx ends.
func (e *Executor) RunRetrying(ctx context.Context, c Command) (r Result, err error) {
	for range busyTries {
		r, err = e.Run(ctx, c)
		if !errors.Is(err, unix.EBUSY) || !beat.Pause(ctx, busyPause) {
			break
		}
	}
	return r, err
}

// Map has memory mapped, readable and executable, at the next hook or patched function, or
// while the process waits in the start gate; unix.EEXIST where something is mapped.
func (e *Executor) Map(ctx context.Context, start, size uint64) error {
	_, err := e.Run(ctx, Command{Op: OpMap, At: AtHooks | AtPatch | AtGate, Args: [commandArgCount]uint64{start, size}})
	return err
}

func (e *Executor) guarded() error {
	if e.guard == nil {
		return nil
	}
	return e.guard()
}

// waitFor waits for a result, attended or not.
func (e *Executor) waitFor(ctx context.Context, t Ticket, attended bool) (Result, bool, error) {
	if attended {
		return e.attendance.waitAttended(ctx, t)
	}
	r, done := e.mailbox.wait(ctx, t)
	return r, done, nil
}

// waitInGrace waits for a command that a thread is executing.
func (e *Executor) waitInGrace(ctx context.Context, t Ticket) (Result, bool) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimedGrace)
	defer cancel()
	return e.mailbox.wait(grace, t)
}

// outcome says why there is no result.
func (e *Executor) outcome() error {
	if e.mailbox.isClosed() {
		return ErrClosed
	}
	return ErrOutcomeUnknown
}

func ofThread(tid int) string {
	if tid == 0 {
		return ""
	}
	return fmt.Sprintf(" %d", tid)
}
