// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

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
