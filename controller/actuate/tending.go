// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"sync"
)

// tending is the work that a change needs for as long as it is in force. It
// takes the lock of the process for what it does there, so it must not be ended
// by somebody who holds that lock, nor the Actuator's.
type tending struct {
	tend func(context.Context)

	mu     sync.Mutex // guards what follows; a leaf lock
	cancel context.CancelFunc
	over   chan struct{} // nil: it does not run
}

// startTending begins it; nil if there is nothing to do.
func startTending(tend func(context.Context)) *tending {
	if tend == nil {
		return nil
	}
	t := &tending{tend: tend}
	t.start()
	return t
}

// start begins it again after end.
func (t *tending) start() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	t.cancel, t.over = cancel, over
	go func() {
		defer close(over)
		t.tend(ctx)
	}()
}

// end ends it and waits for that, without mu: whoever has the lock of the process may
// start it again meanwhile, which is left to the one who ends it.
func (t *tending) end() {
	if t == nil {
		return
	}
	t.mu.Lock()
	cancel, over := t.cancel, t.over
	t.mu.Unlock()
	if over == nil {
		return
	}
	cancel()
	<-over
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == over {
		t.over = nil
	}
}

// await waits until it is over by itself, or ctx ends.
func (t *tending) await(ctx context.Context) {
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	if over == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-over:
	}
}
