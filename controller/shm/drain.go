// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"slices"
	"sync"

	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Drainer holds the buffer that records pass through. One Drainer serves any
// number of memories, one after the other, from one goroutine.
type Drainer struct {
	clock  *Clock
	owners owners
	batch
}

// NewDrainer returns a Drainer that converts times with c.
func NewDrainer(c *Clock) *Drainer {
	return &Drainer{clock: c, batch: batch{buffer: make([]uint64, BatchRecords*recordWords)}}
}

// slotReader is the controller's own memory of one thread slot.
type slotReader struct {
	tail    uint64
	lost    uint64
	ring    uint32 // ring index + 1, as first seen
	corrupt bool
}

// Rings are the rings of a process' threads. Their methods may be called at any time by
// several goroutines.
type Rings struct {
	*mapping
	owners *ownership

	mu    sync.Mutex // one Drain or Reclaim at a time; after life
	slots []slotReader
}

// Drain moves all records that are in the rings now to emit, in batches of at
// most BatchRecords. In a batch, time is CLOCK_MONOTONIC nanoseconds, point the
// session's index, thread the thread's id as the process sees it, and the extra
// value of a DURATION record nanoseconds. Continuations follow their record in
// the same batch. A batch is valid until emit returns. Records of one thread
// come in order; threads follow one another.
//
// Slots of ended threads are freed when they are empty. After Close it does
// nothing. See the package comment for what emit must not do.
func (rs *Rings) Drain(d *Drainer, emit func(batch []byte)) Drained {
	rs.life.RLock()
	defer rs.life.RUnlock()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.data == nil {
		return Drained{}
	}
	d.begin(rs.owners, emit)
	free := rs.geometry.Slots
	l := rs.newLook()
	for i := range d.owners.heads {
		if rs.drainSlot(d, &l, i) {
			free--
		}
	}
	d.flush()
	d.counts.Received -= d.counts.Continuations
	d.counts.FewSlotsFree = free < (rs.geometry.Slots+3)/4
	d.emit = nil
	return d.counts
}

func (d *Drainer) begin(w *ownership, emit func([]byte)) {
	d.scale = d.clock.Scale()
	d.owners.read(w)
	d.mapping = d.owners.now
	d.emit, d.fill, d.counts = emit, 0, Drained{}
}

// drainSlot empties one slot and reports whether it is occupied afterwards.
func (rs *Rings) drainSlot(d *Drainer, l *look, index int) bool {
	r, at := &rs.slots[index], rs.slotAt(index)
	if r.corrupt {
		return true
	}
	if !rs.slotPresent(l, index) {
		return false
	}
	state := load32(rs.data, at+abi.SlotStateAt)
	head := load64(rs.data, at+abi.SlotHeadAt)
	if state == abi.SlotFree {
		return false
	}
	ring := load32(rs.data, at+abi.SlotRingAt)
	if state > abi.SlotClosed || !rs.plausible(r, head, ring) {
		r.giveUp(d)
		return true
	}
	rs.countLost(d, r, at)
	until := d.owners.heads[index]
	if until-r.tail > head-r.tail {
		until = head // what was read before makes no sense
	}
	rs.copyRecords(d, r, at, index, until)
	// State was read before head: a closed slot has no producer, so its head
	// was final.
	if state != abi.SlotClosed || r.tail != head {
		return true
	}
	// No id means "being claimed" to Reclaim until the next thread writes its.
	store32(rs.data, at+abi.SlotTIDAt, 0)
	return !cas32(rs.data, at+abi.SlotStateAt, abi.SlotClosed, abi.SlotFree)
}

// giveUp says that a slot cannot be read any more.
func (r *slotReader) giveUp(d *Drainer) {
	r.corrupt = true
	d.counts.CorruptSlots++
}

// plausible checks what the thread wrote against what the controller knows,
// and remembers the ring at its first appearance. A ring is one slot's for good:
// else each slot could hand out the records of all rings.
func (rs *Rings) plausible(r *slotReader, head uint64, ring uint32) bool {
	if head-r.tail > uint64(rs.geometry.RingRecords) || ring > uint32(rs.geometry.Rings) {
		return false
	}
	if r.ring == 0 && ring != 0 {
		if slices.ContainsFunc(rs.slots, func(other slotReader) bool { return other.ring == ring }) {
			return false
		}
		r.ring = ring
	}
	return r.ring == ring && (ring != 0 || head == r.tail)
}

// countLost adds what the slot lost since last time. A counter that went back
// was started anew.
func (rs *Rings) countLost(d *Drainer, r *slotReader, at int) {
	lost := load64(rs.data, at+abi.SlotLostAt)
	if lost < r.lost {
		r.lost = 0
	}
	d.counts.Lost = saturatingAdd(d.counts.Lost, lost-r.lost)
	r.lost = lost
}

// copyRecords moves the records from tail to head, in runs that end at the end
// of the ring or of the batch, and tells the producer about each run.
func (rs *Rings) copyRecords(d *Drainer, r *slotReader, at, index int, head uint64) {
	if head == r.tail {
		return
	}
	d.first = d.fill
	tid := load32(rs.data, at+abi.SlotTIDAt)
	records := uint64(rs.geometry.RingRecords)
	base := rs.ringAt(int(r.ring - 1))
	for r.tail != head {
		if d.fill == len(d.buffer) {
			d.flushWhole()
		}
		first := r.tail & (records - 1)
		n := min(head-r.tail, records-first, uint64(len(d.buffer)-d.fill)/recordWords)
		n = d.owners.apply(&d.mapping, index, r.tail, n)
		from, size := base+int(first)*attunev1.RecordSize, int(n)*attunev1.RecordSize
		if !rs.allPresent(from, size) {
			r.giveUp(d) // nobody has written what is there according to head
			return
		}
		d.rewrite(words(rs.data[from:from+size]), tid)
		r.tail += n
		store64(rs.data, at+abi.SlotTailAt, r.tail)
	}
}

func saturatingAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
