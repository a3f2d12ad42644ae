// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"sync"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// MaxData and dataBytes bound the calls with measured data.
	MaxData   = 256
	dataBytes = 8 << 20
	// mergeBytes bounds the records that go in one call.
	mergeBytes = 512 << 10
)

// Call is one call to a tunlet.
type Call struct {
	Method string
	Data   bool   // measured data: may be dropped
	Events uint64 // how many events it carries
	Size   int64  // what they weigh, in bytes
	Urgent bool   // ends a rest
	// Records is what Do sends, if that is nothing but records: a worker that
	// is behind sends those of several calls in one.
	Records *attunev1.HandleEventsRequest
	Do      func(context.Context) (*attunev1.Reaction, error)
	Done    func() // nil, or called after the call, in the worker
}

// backlog are the calls that wait for one tunlet. It is no queue of package queue:
// measured data and news have a bound each, but one order; neighbours are merged when
// they are taken; and the next call tells of what was dropped before it. The zero value
// is empty; safe for use by several goroutines.
type backlog struct {
	mu      sync.Mutex // leaf lock; guards what follows
	calls   []Call
	data    int   // calls with measured data
	bytes   int64 // what they weigh
	making  Call  // measured data that was taken and is not delivered yet
	closed  bool
	dropped uint64            // events not delivered
	untold  map[uint64]uint64 // records among them by process, until the next ones tell
}

// put appends a call. Measured data that does not fit is dropped and counted. It
// returns false when there are maxNews of news already, and closes the backlog, which
// takes nothing from then on.
func (b *backlog) put(c Call, maxNews int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		b.dropLocked(c)
		return true
	case c.Data && (b.data >= MaxData || b.bytes+c.Size > dataBytes):
		b.dropLocked(c)
		return true
	case !c.Data && len(b.calls)-b.data >= maxNews:
		b.closed = true
		return false
	}
	if c.Data {
		b.data++
		b.bytes += c.Size
		for _, part := range c.Records.GetRecords() {
			part.Lost += b.untold[part.GetProcess()]
			delete(b.untold, part.GetProcess())
		}
	}
	b.calls = append(b.calls, c)
	return true
}

// state is what a backlog says when it is asked for a call.
type state int

const (
	taken state = iota // here it is
	empty              // there is none now
	over               // it is closed
)

// take takes the first call, and with it the records of those behind it that go in the
// same one.
func (b *backlog) take() (Call, state) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return Call{}, over
	case len(b.calls) == 0:
		return Call{}, empty
	}
	c := b.first()
	for c.Records != nil && len(b.calls) > 0 && b.calls[0].Records != nil && c.Size+b.calls[0].Size <= mergeBytes {
		next := b.first()
		c.Records.Records = append(c.Records.Records, next.Records.GetRecords()...)
		c.Events += next.Events
		c.Size += next.Size
	}
	if c.Data {
		b.making = c
	}
	return c, taken
}

// settle tells what became of the call that was taken last.
func (b *backlog) settle(delivered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !delivered {
		b.dropLocked(b.making)
	}
	b.making = Call{}
}

// first takes the first call. The caller holds mu.
func (b *backlog) first() Call {
	c := b.calls[0]
	b.calls[0] = Call{}
	b.calls = b.calls[1:]
	if c.Data {
		b.data--
		b.bytes -= c.Size
	}
	return c
}

// dropLocked counts measured data that is not delivered. The caller holds mu.
func (b *backlog) dropLocked(c Call) {
	if !c.Data {
		return
	}
	b.dropped += c.Events
	for _, part := range c.Records.GetRecords() {
		if b.untold == nil {
			b.untold = make(map[uint64]uint64)
		}
		b.untold[part.GetProcess()] += part.GetLost() + attunev1.CountRecords(part.GetRecords())
	}
}

// TakeUntold returns how many records of a process were dropped that no call
// tells of; who asks must tell.
func (b *backlog) TakeUntold(process uint64) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	lost := b.untold[process]
	delete(b.untold, process)
	return lost
}

// close has the backlog take and give nothing from now on. The measured data in it, and
// that of a call under way, is lost, and counted.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, c := range append(b.calls, b.making) {
		b.dropLocked(c)
	}
	b.calls, b.data, b.bytes, b.making = nil, 0, 0, Call{}
}

// Lost returns how many events were not delivered.
func (b *backlog) Lost() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}
