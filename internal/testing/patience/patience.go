// SPDX-License-Identifier: Apache-2.0

// Package patience bounds how long tests wait for what must happen. A bound
// only ends a test that has failed: it costs nothing while tests pass, so it is
// far longer than any machine needs, however crowded. A test whose subject is a
// promise of time measures that by itself. The package has no state.
package patience

import (
	"context"
	"testing"
	"time"
)

// Limit is how long a test waits before it fails.
const Limit = 2 * time.Minute

// interval is the time between two looks at a condition.
const interval = 2 * time.Millisecond

// Until waits for the condition and ends the test when it does not hold within
// Limit; what completes the sentence "waited in vain for ...". The condition is
// called by the test's goroutine, at least once.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit); !holds(); time.Sleep(interval) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Receive returns the next value of a channel and ends the test when none comes
// within Limit or the channel is closed; what says what the value is.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case value, open := <-from:
		if !open {
			t.Fatalf("no %s: the channel is closed", what)
		}
		return value
	case <-time.After(Limit):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// Closed waits for a channel to be closed, whatever it still holds, and ends the
// test when that does not happen within Limit.
func Closed[T any](t testing.TB, what string, channel <-chan T) {
	t.Helper()
	end := time.After(Limit)
	for {
		select {
		case _, open := <-channel:
			if !open {
				return
			}
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Context returns a context that ends with the test, or after Limit.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}
