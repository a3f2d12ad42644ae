// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxNews bounds the calls about processes, points and proposals that wait
	// for a tunlet; one that lets more pile up is hung.
	maxNews = 8192
	// maxData and dataBytes bound the calls with measured data.
	maxData   = 256
	dataBytes = 8 << 20
	// mergeBytes bounds the records that go in one call.
	mergeBytes = 512 << 10
)

// errAbsent stands for the answer of a tunlet that is known not to have a
// method.
var errAbsent = status.Error(codes.Unimplemented, "not implemented by the tunlet")

// call is one call to a tunlet.
type call struct {
	method string
	data   bool   // measured data: may be dropped
	events uint64 // how many events it carries
	size   int64  // what they weigh
	// records is what do sends, if that is nothing but records: a worker that
	// is behind sends those of several calls in one.
	records *attunev1.HandleEventsRequest
	do      func(context.Context) (*attunev1.Reaction, error)
	done    func(error) // nil, or told how the call went, in the worker
}

// worker makes the calls to one tunlet, one at a time, in order. Its queue is none of
// package queue: measured data and news have a bound each, but one order; neighbours are
// merged when they are taken; and the next call tells of what was dropped before it.
type worker struct {
	timeout time.Duration
	react   func(*attunev1.Reaction)     // takes over what a call returned
	hung    func(reason string)          // called once when the tunlet does not answer
	failed  func(method string, e error) // a call was answered with an error
	cancel  context.CancelFunc
	ctx     context.Context
	absent  map[string]bool // methods that the tunlet does not implement; run's own

	mu      sync.Mutex // leaf lock; guards what follows
	queue   []call
	data    int
	bytes   int64
	closed  bool
	dropped uint64            // events not delivered
	untold  map[uint64]uint64 // records among them by process, until the next ones tell
	wake    queue.Bell        // rung when there is a call
}

// run makes calls until stop. It belongs to a goroutine of the session.
func (w *worker) run() {
	for {
		c, ok := w.next()
		if !ok {
			return
		}
		w.make(c)
	}
}

// next waits for a call.
func (w *worker) next() (call, bool) {
	for {
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return call{}, false
		}
		if len(w.queue) > 0 {
			c := w.take()
			for c.records != nil && len(w.queue) > 0 && w.queue[0].records != nil && c.size+w.queue[0].size <= mergeBytes {
				c.merge(w.take())
			}
			w.mu.Unlock()
			return c, true
		}
		w.mu.Unlock()
		select {
		case <-w.wake:
		case <-w.ctx.Done():
			return call{}, false
		}
	}
}

// take takes the first call out of the queue. The caller holds mu.
func (w *worker) take() call {
	c := w.queue[0]
	w.queue[0] = call{}
	w.queue = w.queue[1:]
	if c.data {
		w.data--
		w.bytes -= c.size
	}
	return c
}

// merge adds the records of another call.
func (c *call) merge(next call) {
	c.records.Records = append(c.records.Records, next.records.GetRecords()...)
	c.events += next.events
	c.size += next.size
}

// make makes one call. A tunlet that does not answer in time is hung; one that
// does not implement the method is not interested.
func (w *worker) make(c call) {
	if w.absent[c.method] {
		if c.done != nil {
			c.done(errAbsent)
		}
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.timeout)
	defer cancel()
	reaction, err := c.do(ctx)
	switch code := status.Code(err); {
	case err == nil:
		if reaction != nil {
			w.react(reaction)
		}
	case code == codes.Unimplemented:
		if w.absent == nil {
			w.absent = make(map[string]bool)
		}
		w.absent[c.method] = true
	case code == codes.DeadlineExceeded && w.ctx.Err() == nil:
		w.hung("no answer to " + c.method + " within " + w.timeout.String())
	case code != codes.Unavailable && code != codes.Canceled:
		w.refused(c)
		w.failed(c.method, err)
	}
	if c.done != nil {
		c.done(err)
	}
}

// push queues a call. It never waits: data that does not fit is dropped and
// counted, and a queue full of news means that the tunlet is hung.
func (w *worker) push(c call) {
	if !w.enqueue(c) {
		w.hung("it does not keep up with what it is told")
		return
	}
	w.wake.Ring()
}

// enqueue appends a call if there is room. It returns false when news does not
// fit, and closes the queue.
func (w *worker) enqueue(c call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return true
	case c.data && (w.data >= maxData || w.bytes+c.size > dataBytes):
		w.drop(c)
		return true
	case !c.data && len(w.queue)-w.data >= maxNews:
		w.closed = true
		return false
	}
	if c.data {
		w.data++
		w.bytes += c.size
		w.tell(c.records)
	}
	w.queue = append(w.queue, c)
	return true
}

// refused counts measured data that a tunlet has answered with an error.
func (w *worker) refused(c call) {
	if !c.data {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(c)
}

// drop counts what is not delivered. The caller holds mu.
func (w *worker) drop(c call) {
	w.dropped += c.events
	for _, part := range c.records.GetRecords() {
		if w.untold == nil {
			w.untold = make(map[uint64]uint64)
		}
		w.untold[part.GetProcess()] += part.GetLost() + attunev1.CountRecords(part.GetRecords())
	}
}

// tell adds to records what was dropped before them. The caller holds mu.
func (w *worker) tell(records *attunev1.HandleEventsRequest) {
	for _, part := range records.GetRecords() {
		part.Lost += w.untold[part.GetProcess()]
		delete(w.untold, part.GetProcess())
	}
}

// takeUntold returns how many records of a process were dropped that no call
// tells of; who asks must tell.
func (w *worker) takeUntold(process uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := w.untold[process]
	delete(w.untold, process)
	return lost
}

// stop ends the worker; a call under way is given up.
func (w *worker) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
}

// lost returns how many events were not delivered.
func (w *worker) lost() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}
