// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed says that nothing more goes into a queue, or comes out of it.
var ErrClosed = errors.New("the queue is closed")

// Queue is a bounded queue, first in, first out. Use New or NewWeighted.
type Queue[T any] struct {
	limit int64
	weigh func(T) int64
	ready Bell          // rung when there is something to take, or never will be
	room  Bell          // rung when something was taken
	ended chan struct{} // closed by Close

	mu      sync.Mutex // guards what follows; a leaf lock
	items   []T
	weight  int64 // of items
	dropped uint64
	closed  bool
}

// New returns a queue of so many items.
func New[T any](limit int) *Queue[T] {
	return NewWeighted(int64(limit), func(T) int64 { return 1 })
}

// NewWeighted returns a queue of items that weigh no more than limit together,
// such as bytes.
func NewWeighted[T any](limit int64, weigh func(T) int64) *Queue[T] {
	return &Queue[T]{limit: limit, weigh: weigh, ready: NewBell(), room: NewBell(), ended: make(chan struct{})}
}

// Offer puts an item in if there is room, and else drops and counts it. It
// reports which. It never waits.
func (q *Queue[T]) Offer(item T) bool { return q.OfferWithin(item, q.limit) }

// OfferWithin is Offer with a limit of its own.
func (q *Queue[T]) OfferWithin(item T, limit int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && q.add(item, limit) {
		return true
	}
	q.dropped++
	return false
}

// Push puts an item in, and drops and counts the oldest ones for which there is
// no room then. It returns those, and never waits. A closed queue drops the item.
func (q *Queue[T]) Push(item T) (dropped []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.dropped++
		return []T{item}
	}
	for len(q.items) > 0 && q.weight+q.weigh(item) > q.limit {
		dropped = append(dropped, q.remove())
	}
	q.dropped += uint64(len(dropped))
	q.append(item)
	return dropped
}

// Put waits for room, until ctx is done or the queue is closed, which the error
// says. What it does not put in is not counted: the caller knows of it.
func (q *Queue[T]) Put(ctx context.Context, item T) error {
	for {
		if put, err := q.put(item); put || err != nil {
			return err
		}
		select {
		case <-q.room:
		case <-q.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (q *Queue[T]) put(item T) (put bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	put = q.add(item, q.limit)
	if put && q.weight < q.limit {
		q.room.Ring() // for the next one that waits
	}
	return put, nil
}

// add puts an item in if there is room. The caller holds mu.
func (q *Queue[T]) add(item T, limit int64) bool {
	if q.weight+q.weigh(item) > limit {
		return false
	}
	q.append(item)
	return true
}

// append puts an item in. The caller holds mu.
func (q *Queue[T]) append(item T) {
	q.items = append(q.items, item)
	q.weight += q.weigh(item)
	q.ready.Ring()
}

// Return puts items back that were taken, before all others, whatever the limit is.
func (q *Queue[T]) Return(items []T) {
	if len(items) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, item := range items {
		q.weight += q.weigh(item)
	}
	q.items = append(items[:len(items):len(items)], q.items...)
	q.ready.Ring()
}

// Take waits for an item and takes it, until ctx is done. When the queue is
// closed and empty the error is [ErrClosed].
func (q *Queue[T]) Take(ctx context.Context) (item T, err error) {
	for {
		item, taken, err := q.take()
		if taken || err != nil {
			return item, err
		}
		if err := q.wait(ctx); err != nil {
			return item, err
		}
	}
}

// TryTake takes an item if there is one. It never waits.
func (q *Queue[T]) TryTake() (item T, ok bool) {
	item, ok, _ = q.take()
	return item, ok
}

// TakeAll is Take for all that waits.
func (q *Queue[T]) TakeAll(ctx context.Context) (items []T, err error) {
	for {
		if items, closed := q.drain(); len(items) > 0 {
			return items, nil
		} else if closed {
			return nil, ErrClosed
		}
		if err := q.wait(ctx); err != nil {
			return nil, err
		}
	}
}

func (q *Queue[T]) wait(ctx context.Context) error {
	select {
	case <-q.ready:
		return nil
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *Queue[T]) take() (item T, taken bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.items) > 0:
		item = q.remove()
		if len(q.items) > 0 {
			q.ready.Ring() // for the next one that waits
		}
		return item, true, nil
	case q.closed:
		return item, false, ErrClosed
	}
	return item, false, nil
}

// remove takes the oldest item out. The caller holds mu, and has looked that there
// is one.
func (q *Queue[T]) remove() T {
	var none T
	item := q.items[0]
	q.items[0] = none
	q.items = q.items[1:]
	q.weight -= q.weigh(item)
	q.room.Ring()
	return item
}

// Drain takes all that there is, without waiting.
func (q *Queue[T]) Drain() []T {
	items, _ := q.drain()
	return items
}

func (q *Queue[T]) drain() (items []T, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, q.items, q.weight = q.items, nil, 0
	q.room.Ring()
	return items, q.closed
}

// Close lets nothing more in; what is in can be taken. It may be called more than
// once.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.ended)
	}
}

// Closed says whether Close was called.
func (q *Queue[T]) Closed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Ready is rung when there is something to take, for whoever waits for other
// things too. One rung may find nothing.
func (q *Queue[T]) Ready() <-chan struct{} { return q.ready }

// Len returns how many items wait.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// Dropped returns how many items found no room so far.
func (q *Queue[T]) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
