// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// failing notes that a test was ended instead of ending it.
type failing struct {
	testing.TB
	failed bool
}

func (*failing) Helper() {}

func (f *failing) Fatalf(string, ...any) {
	f.failed = true
	runtime.Goexit()
}

// fails runs what a test would do and returns whether that test has failed.
func fails(run func(testing.TB)) bool {
	tb := &failing{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(tb)
	}()
	<-done
	return tb.failed
}

func TestPatience(t *testing.T) {
	full := func() chan int { c := make(chan int, 1); c <- 1; return c }
	closed := func() chan int { c := full(); close(c); return c }
	for _, row := range []struct {
		name  string
		run   func(testing.TB)
		fails bool
	}{
		{"holds", func(t testing.TB) { Until(t, "x", func() bool { return true }) }, false},
		{"never holds", func(t testing.TB) { Until(t, "x", func() bool { return false }) }, true},
		{"a value", func(t testing.TB) { Receive(t, "x", full()) }, false},
		{"no value", func(t testing.TB) { Receive(t, "x", make(chan int)) }, true},
		{"closed instead", func(t testing.TB) { c := closed(); <-c; Receive(t, "x", c) }, true},
		{"closed", func(t testing.TB) { Closed(t, "x", closed()) }, false},
		{"stays open", func(t testing.TB) { Closed(t, "x", full()) }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(*testing.T) {
				if got := fails(row.run); got != row.fails {
					t.Errorf("failed: %v, want %v", got, row.fails)
				}
			})
		})
	}
}

func TestContextEnds(t *testing.T) {
	var end time.Time
	t.Run("inside", func(t *testing.T) { end, _ = Context(t).Deadline() })
	if left := time.Until(end); left <= 0 || left > Limit {
		t.Errorf("the context ends in %v", left)
	}
}
