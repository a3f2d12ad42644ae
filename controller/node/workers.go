// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
)

// workers are goroutines that outlive discovery: of sessions, and of what an Analyzer
// is told beside. Its methods may be called from any goroutine, but for what open and
// end say.
type workers struct {
	group sync.WaitGroup
	stop  context.CancelFunc

	mu  sync.Mutex      // guards what follows; a leaf lock
	ctx context.Context // what they are given; nil before open and after end
}

// open lets work start. It is called once.
func (w *workers) open(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.stop = context.WithCancel(ctx)
}

// end refuses new work, cancels what is under way, and waits for it. It is called by
// the goroutine that has called open.
func (w *workers) end() {
	w.mu.Lock()
	w.ctx = nil
	w.mu.Unlock()
	w.stop()
	w.group.Wait()
}

// opened says whether work may start.
func (w *workers) opened() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ctx != nil
}

// start runs work in a goroutine; false if no more is taken.
func (w *workers) start(work func(context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx := w.ctx
	if ctx == nil {
		return false
	}
	w.group.Go(func() { work(ctx) })
	return true
}
