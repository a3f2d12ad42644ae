// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"sync"
	"sync/atomic"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// acknowledgeEvery is after how many messages of events a controller is told that they
// were taken, where no request tells it sooner: leases are renewed every second.
const acknowledgeEvery = 64

// taken counts what a connection's event channel has brought, for its management channel,
// which tells the controller. nil: the controller does not want to be told.
type taken struct {
	messages, told atomic.Uint64
	due            queue.Bell // rung when so many are not told of
	channels       int        // that are open; guarded by connections.mu
}

// add counts a message that the session has. What happens to it there the session counts.
func (t *taken) add() {
	if t != nil && t.messages.Add(1)-t.told.Load() >= acknowledgeEvery {
		t.due.Ring()
	}
}

// when is rung when the controller is to be told.
func (t *taken) when() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.due
}

// tell has a request say how many there are.
func (t *taken) tell(r *attunev1.ManageResponse) {
	if t != nil {
		n := t.messages.Load()
		t.told.Store(n)
		r.EventsTaken = &n
	}
}

// connections join the two channels of each connection by its number. Safe for use by
// several goroutines.
type connections struct {
	mu    sync.Mutex // guards what follows and taken.channels; a leaf lock
	taken map[uint64]*taken
}

// join returns what the channels of a connection share, until leave.
func (c *connections) join(number uint64) *taken {
	if number == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.taken[number]
	if t == nil {
		t = &taken{due: queue.NewBell()}
		c.taken[number] = t
	}
	t.channels++
	return t
}

// leave is called when a channel that has joined ends.
func (c *connections) leave(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.taken[number]; t != nil {
		if t.channels--; t.channels == 0 {
			delete(c.taken, number)
		}
	}
}
