// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
)

// work is goroutines that the controller waits for when it stops. Its methods may be
// called from any goroutine.
type work struct {
	group sync.WaitGroup

	mu    sync.Mutex // guards what follows; a leaf lock
	ended bool
}

// Go runs a function in a goroutine, unless the controller has stopped: the Analyzer may
// ask for something while its connection is being closed.
func (w *work) Go(run func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.group.Go(run)
	}
}

// end has nothing more begin, waits for what has until ctx ends, and reports whether it
// has ended.
func (w *work) end(ctx context.Context) bool {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	return ends(ctx, &w.group)
}

// ends waits for a group until ctx ends, and reports whether it has ended.
func ends(ctx context.Context, group *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { // ends with the group
		defer close(done)
		group.Wait()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
