// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/attune-hpc/attune/controller/link"
)

var _ link.Finder = (*finder)(nil)

// finder leads a session's controller through attuned to its Analyzer. Find belongs to
// one goroutine.
type finder struct {
	*conversation

	mu     sync.Mutex    // guards what follows; a leaf lock
	moving chan struct{} // closed when the Analyzer has moved; nil: it has
}

// Find implements link.Finder.
func (f *finder) Find(ctx context.Context) (link.Peer, <-chan struct{}, error) {
	moving := make(chan struct{})
	f.mu.Lock()
	f.moving = moving // attuned's word may come right after its answer
	f.mu.Unlock()
	peer := link.Peer{Dial: f.dial}
	_, err := f.ask(ctx, find, nil, noFD, &peer.Address)
	return peer, moving, err
}

// move notes that the Analyzer has moved.
func (f *finder) move() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moving != nil {
		close(f.moving)
		f.moving = nil
	}
}

// dial makes a connection.
func (f *finder) dial(ctx context.Context) (net.Conn, error) {
	file, err := f.ask(ctx, dial, nil, noFD, nil)
	if err != nil {
		return nil, err
	}
	if file == nil {
		return nil, fmt.Errorf("%w: no connection", errWire)
	}
	return connOf(file)
}
