// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"slices"
	"sync"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// change is a local point that became another session point's. What is in the rings
// by then is not that one's.
type change struct {
	local int
	heads []uint64 // of the slots that were used by then
}

// before says how many records behind the tail of a slot are from before the change.
func (c change) before(slot int, tail uint64) uint64 {
	if slot >= len(c.heads) || c.heads[slot] <= tail {
		return 0
	}
	return c.heads[slot] - tail
}

// ownership says which session point each local point is of. mu is a leaf lock, and
// the methods may be called by several goroutines.
type ownership struct {
	*mapping

	mu      sync.Mutex         // guards what follows
	current [PointCount]uint16 // session's index by local index
	changes []change           // of current, since the last Drain
}

// give makes a local point that of a session point. A thread that is about to write a
// record at this moment may still give the next one what was the last one's. The caller
// holds life.
func (w *ownership) give(local int, point uint16) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current[local] == point {
		return
	}
	w.changes = slices.DeleteFunc(w.changes, func(c change) bool { return c.local == local })
	w.changes = append(w.changes, change{local, w.readHeads(nil)})
	w.current[local] = point
}

// take takes a local point away from its session point.
func (w *ownership) take(local int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current[local] = 0
}

// readHeads appends where the records of each used slot end.
func (w *ownership) readHeads(heads []uint64) []uint64 {
	l := w.newLook()
	for i := range w.usedSlots() {
		var head uint64
		if w.slotPresent(&l, i) {
			head = load64(w.data, w.slotAt(i)+abi.SlotHeadAt)
		}
		heads = append(heads, head)
	}
	return heads
}

// owners says whose the records are that a Drain reads: those up to heads, which were
// read while no point changed hands.
type owners struct {
	now     [PointCount]uint16 // session's index by local index
	changes []change           // since the Drain before
	heads   []uint64           // by slot
}

// read reads them. The caller holds life.
func (o *owners) read(w *ownership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.now = w.current
	o.changes, w.changes = w.changes, nil
	o.heads = w.readHeads(o.heads[:0])
}

// apply makes mapping right for the first of n records behind the tail of a slot, and
// returns for how many of them it is.
func (o *owners) apply(mapping *[PointCount]uint16, slot int, tail, n uint64) uint64 {
	for _, c := range o.changes {
		mapping[c.local] = o.now[c.local]
	}
	for _, c := range o.changes {
		if old := c.before(slot, tail); old > 0 {
			mapping[c.local] = 0
			n = min(n, old)
		}
	}
	return n
}
