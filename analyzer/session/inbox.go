// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"
	"sync/atomic"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// inbox is how others reach the loop. Its methods are safe for use by several
// goroutines. It is no queue of package queue: news waits for room and measured data
// does not, in one order, and the loop takes its ticks beside them.
type inbox struct {
	messages chan func()
	done     chan struct{} // closed when the loop takes no more

	queued  atomic.Int64  // bytes of measured data among the messages
	lost    atomic.Uint64 // events dropped here, and records of processes that are not known
	dropped dropped       // records among them that nobody was told of yet
}

// post hands a function to the loop; it waits while the inbox is full. It
// reports whether the loop will run it.
func (b *inbox) post(f func()) bool {
	select {
	case <-b.done:
		return false
	default:
	}
	select {
	case b.messages <- f:
		return true
	case <-b.done:
		return false
	}
}

// postData hands measured data to the loop, or drops it when the inbox is full,
// and says which: events is how many are lost then, size what they weigh.
func (b *inbox) postData(events uint64, size int, f func()) bool {
	if len(b.messages) >= dataShare || b.queued.Load()+int64(size) > inboxBytes {
		b.lost.Add(events)
		return false
	}
	b.queued.Add(int64(size))
	select {
	case b.messages <- func() { b.queued.Add(-int64(size)); f() }:
		return true
	default:
		b.queued.Add(-int64(size))
		b.lost.Add(events)
		return false
	}
}

// source is where records come from: a process of a controller, by the handle
// that it has there.
type source struct {
	controller string
	process    uint64
}

// dropped counts records that found the inbox full, by source, until somebody
// tells of them. The zero value is ready; safe for use by several goroutines.
type dropped struct {
	mu      sync.Mutex
	records map[source]uint64
}

func (d *dropped) add(from source, records uint64) {
	if records == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.records == nil {
		d.records = make(map[source]uint64)
	}
	d.records[from] += records
}

func (d *dropped) take(from source) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	records := d.records[from]
	delete(d.records, from)
	return records
}

// publishRecords hands a batch to the loop with what was dropped before it, or
// drops it. It returns how many records the batch has.
func (s *Session) publishRecords(id string, b *attunev1.RecordBatch) (records uint64) {
	records = attunev1.RecordsIn(b)
	from := source{id, b.GetProcess()}
	before := s.dropped.take(from)
	if !s.postData(records, len(b.GetRecords()), func() { s.routeRecords(s.controllers.get(id), b, before) }) {
		s.dropped.add(from, before+records+lostBefore(b))
	}
	return records
}

// lostBefore is what a batch tells of that was lost on its way.
func lostBefore(b *attunev1.RecordBatch) uint64 {
	return b.GetLostRing() + b.GetLostQueue() + b.GetLostBpf()
}
