// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

const (
	// inboxSize bounds the messages in the inbox, inboxBytes the measured data
	// among them.
	inboxSize  = 1024
	inboxBytes = 8 << 20
	// dataShare is how much of the inbox data may fill; the rest is for news.
	dataShare = inboxSize * 3 / 4
)

// ErrEnded is returned for requests to a session that has ended.
var ErrEnded = errors.New("the session has ended")

// inbox is how others reach the loop. Its methods are safe for use by several
// goroutines. It is no queue of package queue: news waits for room and measured data
// does not, in one order, and the loop takes its ticks beside them.
type inbox struct {
	messages chan func()
	done     chan struct{} // closed when the loop takes no more

	queued atomic.Int64  // bytes of measured data among the messages
	lost   atomic.Uint64 // events dropped here, and records of processes that are not known
}

func newInbox() *inbox {
	return &inbox{messages: make(chan func(), inboxSize), done: make(chan struct{})}
}

// Done is closed when the session takes no more messages.
func (b *inbox) Done() <-chan struct{} { return b.done }

// post hands a function to the loop; it waits while the inbox is full, so that the loop
// itself must not call it. It reports whether the loop will run it.
func (b *inbox) post(f func()) bool {
	return b.postWithin(context.Background(), f) == nil
}

// postWithin is post for callers that wait for room until ctx ends, whose error it
// returns then. Where there is room, it does not look at ctx.
func (b *inbox) postWithin(ctx context.Context, f func()) error {
	select {
	case <-b.done:
		return ErrEnded
	default:
	}
	select {
	case b.messages <- f:
		return nil
	default:
	}
	select {
	case b.messages <- f:
		return nil
	case <-b.done:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do has the loop run a function and waits until it has. With ctx's error the loop may
// run it yet, with ErrEnded it does not any more.
func (b *inbox) do(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	if err := b.postWithin(ctx, func() { f(); close(ran) }); err != nil {
		return err
	}
	return b.wait(ctx, ran)
}

// wait waits for a channel that the loop closes, or for the end of ctx or the session.
func (b *inbox) wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.done:
		return ErrEnded
	}
}

// postData hands measured data to the loop, or drops it when the inbox is full,
// and says which: events is how many are lost then, size what they weigh.
func (b *inbox) postData(events uint64, size int, f func()) bool {
	if len(b.messages) >= dataShare || b.queued.Load()+int64(size) > inboxBytes {
		b.lost.Add(events)
		return false
	}
	b.queued.Add(int64(size))
	select {
	case b.messages <- func() { b.queued.Add(-int64(size)); f() }:
		return true
	default:
		b.queued.Add(-int64(size))
		b.lost.Add(events)
		return false
	}
}

// waiters wait for conditions of the loop's state. The list belongs to the loop.
type waiters struct {
	inbox *inbox
	list  []waiter
}

// waiter waits for a condition.
type waiter struct {
	met  func() bool
	done chan struct{}
}

// Await returns when a condition of what the sinks have taken is met, which is looked
// at in the loop, or with ctx's error.
func (ws *waiters) Await(ctx context.Context, met func() bool) error {
	return ws.until(ctx, "await it", func() {}, met)
}

// until has the loop begin something and waits until its condition is met.
func (ws *waiters) until(ctx context.Context, what string, begin func(), met func() bool) error {
	w := waiter{met: met, done: make(chan struct{})}
	err := ws.inbox.postWithin(ctx, func() { begin(); ws.list = append(ws.list, w) })
	if err == nil {
		err = ws.inbox.wait(ctx, w.done)
	}
	if err == nil || errors.Is(err, ErrEnded) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// releaseMet lets those go on whose condition is met.
func (ws *waiters) releaseMet() {
	ws.list = slices.DeleteFunc(ws.list, func(w waiter) bool {
		met := w.met()
		if met {
			close(w.done)
		}
		return met
	})
}
