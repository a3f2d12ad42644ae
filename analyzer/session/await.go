// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

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
	if !ws.inbox.post(func() { begin(); ws.list = append(ws.list, w) }) {
		return ErrEnded
	}
	err := ws.inbox.wait(ctx, w.done)
	if err == nil || errors.Is(err, ErrEnded) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// release lets those go on whose condition is met.
func (ws *waiters) release() {
	ws.list = slices.DeleteFunc(ws.list, func(w waiter) bool {
		met := w.met()
		if met {
			close(w.done)
		}
		return met
	})
}
