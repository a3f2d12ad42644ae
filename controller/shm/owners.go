// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"slices"

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

// give makes a local point that of a session point. A thread that is about to write a
// record at this moment may still give the next one what was the last one's. The caller
// holds life and control.
func (m *Memory) give(local int, point uint16) {
	if m.mapping[local].Load() == uint32(point) {
		return
	}
	m.changes = slices.DeleteFunc(m.changes, func(c change) bool { return c.local == local })
	m.changes = append(m.changes, change{local, m.readHeads(nil)})
	m.mapping[local].Store(uint32(point))
}

// readHeads appends where the records of each used slot end.
func (m *Memory) readHeads(heads []uint64) []uint64 {
	for i := range m.usedSlots() {
		heads = append(heads, load64(m.data, m.slotAt(i)+abi.SlotHeadAt))
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

// read reads them. The caller holds life and drain.
func (o *owners) read(m *Memory) {
	m.control.Lock()
	defer m.control.Unlock()
	for i := range o.now {
		o.now[i] = uint16(m.mapping[i].Load())
	}
	o.changes, m.changes = m.changes, nil
	o.heads = m.readHeads(o.heads[:0])
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
