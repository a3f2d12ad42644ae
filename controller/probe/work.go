// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"sync"
)

// work is what goes on in the background until close. Its methods may be called from
// any goroutine, with the lock of a process held as well.
type work struct {
	ctx    context.Context // ended by close
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu sync.Mutex // held while something begins, and while ctx is ended; a leaf lock
}

func newWork() *work {
	w := &work{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// begin starts what close waits for. After close it does nothing.
func (w *work) begin(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() == nil {
		w.group.Go(f)
	}
}

// close waits for what is under way.
func (w *work) close() {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.group.Wait()
}
