// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstPoll = 50 * time.Microsecond
	lastPoll  = 2 * time.Millisecond
	// claimedGrace is how long Run waits, after its context has ended, for a
	// command that a thread is executing.
	claimedGrace = 100 * time.Millisecond
)

// Run posts a command and waits for its result. The result is valid if err is
// nil or an Errno with which the application refused. When ctx ends first the
// command is taken back (ErrNoSafePoint, it never runs) unless a thread is
// executing it; then Run waits a moment longer and reports ErrOutcomeUnknown.
// Safe to call at any time, several at once.
func (m *Memory) Run(ctx context.Context, c Command) (Result, error) {
	start := time.Now()
	if err := m.guarded(); err != nil {
		return Result{}, fmt.Errorf("command %d: %w", c.ID, err)
	}
	attended := m.attendance.attendant != nil && c.attendable()
	posted := c
	if attended {
		posted.At |= AtStopped
	}
	ticket, err := m.Post(posted)
	if err != nil {
		return Result{}, err
	}
	result, done, unattended := m.waitFor(ctx, ticket, attended)
	if !done && m.Cancel(ticket) {
		return Result{}, errors.Join(fmt.Errorf("command %d: %w: no thread%s entered a watched function (%s) within %s: %w",
			c.ID, ErrNoSafePoint, ofThread(c.Thread), c.At, time.Since(start).Round(time.Millisecond), context.Cause(ctx)), unattended)
	}
	if !done {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimedGrace)
		defer cancel()
		result, done = m.wait(grace, ticket)
	}
	if !done {
		m.abandon(ticket)
		return Result{}, fmt.Errorf("command %d: %w", c.ID, m.outcome())
	}
	switch result.Errno {
	case 0:
		return result, nil
	case unix.EPERM: // no command answers that
		return result, fmt.Errorf("command %d: %w", c.ID, ErrConfined)
	}
	return result, fmt.Errorf("command %d in the application: %w", c.ID, result.Errno)
}

// SetGuard says who is asked before each command is posted, and refuses it by an
// error. It is called before any Run.
func (m *Memory) SetGuard(guard func() error) { m.guard = guard }

func (m *Memory) guarded() error {
	if m.guard == nil {
		return nil
	}
	return m.guard()
}

// waitFor waits for a result, attended or not.
func (m *Memory) waitFor(ctx context.Context, t Ticket, attended bool) (Result, bool, error) {
	if attended {
		return m.waitAttended(ctx, t)
	}
	r, done := m.wait(ctx, t)
	return r, done, nil
}

// wait polls until there is a result, ctx ends or the memory is closed.
func (m *Memory) wait(ctx context.Context, t Ticket) (Result, bool) {
	timer := time.NewTimer(firstPoll)
	defer timer.Stop()
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		if r, done := m.Poll(t); done || m.isClosed() {
			return r, done
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return m.Poll(t)
		case <-timer.C:
		}
	}
}

// outcome says why there is no result.
func (m *Memory) outcome() error {
	if m.isClosed() {
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
