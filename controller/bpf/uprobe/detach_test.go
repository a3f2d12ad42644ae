// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowLink is a link that the kernel takes a while to close.
type slowLink struct {
	open, most *atomic.Int32
	closed     *atomic.Int32
	takes      time.Duration
}

func (l slowLink) Close() error {
	now := l.open.Add(1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
	time.Sleep(l.takes)
	l.open.Add(-1)
	l.closed.Add(1)
	return nil
}

// Detaching takes none of the caller's time, is bounded, and is told when the
// last link is closed, not before.
func TestDetachingWaitsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const links, each = 3 * maxDetaching, 50 * time.Millisecond
		var open, most, closed atomic.Int32
		var all []io.Closer
		for range links {
			all = append(all, slowLink{&open, &most, &closed, each})
		}
		var d detacher
		var atDone atomic.Int32
		start := time.Now()
		d.detach(all, func() { atDone.Store(closed.Load()) })
		if waited := time.Since(start); waited != 0 {
			t.Errorf("detach took %v", waited)
		}
		if d.wait(each / 2) {
			t.Error("done before any link can be")
		}
		if !d.wait(time.Hour) {
			t.Error("not done")
		}
		if took := time.Since(start); took != 3*each {
			t.Errorf("%d links took %v", links, took)
		}
		if most.Load() != maxDetaching || atDone.Load() != links {
			t.Errorf("%d at a time; %d closed when all were said to be", most.Load(), atDone.Load())
		}
	})
}

func TestDetachingNothingIsDone(t *testing.T) {
	var d detacher
	done := make(chan struct{})
	d.detach(nil, func() { close(done) })
	<-done
	if !d.wait(time.Hour) {
		t.Error("not done")
	}
}
