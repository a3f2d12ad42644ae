// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"slices"

	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// BatchRecords is the most records, their continuations included, that Drain
// hands out at once.
const BatchRecords = 4096

const recordWords = attunev1.RecordSize / 8

// Drained tells what one Drain did. All counts are since the Drain before.
type Drained struct {
	// Received is the number of records handed out.
	Received uint64
	// Continuations is the number of units behind them that are none.
	Continuations uint64
	// Lost is the number of records that DMLib dropped, because a ring was
	// full or a thread had none.
	Lost uint64
	// Unmapped is the number of records of points that are not enabled any more.
	Unmapped uint64
	// Corrupt is the number of records with an impossible point.
	Corrupt uint64
	// CorruptSlots is the number of slots found unusable in this Drain. They
	// stay unused for the life of the memory.
	CorruptSlots int
	// FewSlotsFree asks for a Reclaim: less than a quarter is left.
	FewSlotsFree bool
}

// Drainer holds the buffer that records pass through. One Drainer serves any
// number of memories, one after the other, from one goroutine.
type Drainer struct {
	clock   *Clock
	buffer  []uint64 // BatchRecords records
	fill    int      // words in use
	first   int      // word where the records of the slot begin that is being read
	scale   Scale
	mapping [PointCount]uint16 // for the records that are being read
	owners  owners
	emit    func(batch []byte)
	counts  Drained
}

// NewDrainer returns a Drainer that converts times with c.
func NewDrainer(c *Clock) *Drainer {
	return &Drainer{clock: c, buffer: make([]uint64, BatchRecords*recordWords)}
}

// slotReader is the controller's own memory of one thread slot.
type slotReader struct {
	tail    uint64
	lost    uint64
	ring    uint32 // ring index + 1, as first seen
	corrupt bool
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
func (m *Memory) Drain(d *Drainer, emit func(batch []byte)) Drained {
	m.life.RLock()
	defer m.life.RUnlock()
	m.drain.Lock()
	defer m.drain.Unlock()
	if m.data == nil {
		return Drained{}
	}
	d.begin(m, emit)
	free := m.geometry.Slots
	for i := range d.owners.heads {
		if m.drainSlot(d, i) {
			free--
		}
	}
	d.flush()
	d.counts.Received -= d.counts.Continuations
	d.counts.FewSlotsFree = free < (m.geometry.Slots+3)/4
	d.emit = nil
	return d.counts
}

func (d *Drainer) begin(m *Memory, emit func([]byte)) {
	d.scale = d.clock.Scale()
	d.owners.read(m)
	d.mapping = d.owners.now
	d.emit, d.fill, d.counts = emit, 0, Drained{}
}

// drainSlot empties one slot and reports whether it is occupied afterwards.
func (m *Memory) drainSlot(d *Drainer, index int) bool {
	r, at := &m.slots[index], m.slotAt(index)
	if r.corrupt {
		return true
	}
	state := load32(m.data, at+abi.SlotStateAt)
	head := load64(m.data, at+abi.SlotHeadAt)
	if state == abi.SlotFree {
		return false
	}
	ring := load32(m.data, at+abi.SlotRingAt)
	if state > abi.SlotClosed || !m.plausible(r, head, ring) {
		r.corrupt = true
		d.counts.CorruptSlots++
		return true
	}
	m.countLost(d, r, at)
	until := d.owners.heads[index]
	if until-r.tail > head-r.tail {
		until = head // what was read before makes no sense
	}
	m.copyRecords(d, r, at, index, until)
	// State was read before head: a closed slot has no producer, so its head
	// was final.
	if state != abi.SlotClosed || until != head {
		return true
	}
	// No id means "being claimed" to Reclaim until the next thread writes its.
	store32(m.data, at+abi.SlotTIDAt, 0)
	return !cas32(m.data, at+abi.SlotStateAt, abi.SlotClosed, abi.SlotFree)
}

// plausible checks what the thread wrote against what the controller knows,
// and remembers the ring at its first appearance. A ring is one slot's for good:
// else each slot could hand out the records of all rings.
func (m *Memory) plausible(r *slotReader, head uint64, ring uint32) bool {
	if head-r.tail > uint64(m.geometry.RingRecords) || ring > uint32(m.geometry.Rings) {
		return false
	}
	if r.ring == 0 && ring != 0 {
		if slices.ContainsFunc(m.slots, func(other slotReader) bool { return other.ring == ring }) {
			return false
		}
		r.ring = ring
	}
	return r.ring == ring && (ring != 0 || head == r.tail)
}

// countLost adds what the slot lost since last time. A counter that went back
// was started anew.
func (m *Memory) countLost(d *Drainer, r *slotReader, at int) {
	lost := load64(m.data, at+abi.SlotLostAt)
	if lost < r.lost {
		r.lost = 0
	}
	d.counts.Lost = saturatingAdd(d.counts.Lost, lost-r.lost)
	r.lost = lost
}

// copyRecords moves the records from tail to head, in runs that end at the end
// of the ring or of the batch, and tells the producer about each run.
func (m *Memory) copyRecords(d *Drainer, r *slotReader, at, index int, head uint64) {
	if head == r.tail {
		return
	}
	d.first = d.fill
	tid := load32(m.data, at+abi.SlotTIDAt)
	records := uint64(m.geometry.RingRecords)
	base := m.ringAt(int(r.ring - 1))
	for r.tail != head {
		if d.fill == len(d.buffer) {
			d.flushWhole()
		}
		first := r.tail & (records - 1)
		n := min(head-r.tail, records-first, uint64(len(d.buffer)-d.fill)/recordWords)
		n = d.owners.apply(&d.mapping, index, r.tail, n)
		from := base + int(first)*attunev1.RecordSize
		d.rewrite(words(m.data[from:from+int(n)*attunev1.RecordSize]), tid)
		r.tail += n
		store64(m.data, at+abi.SlotTailAt, r.tail)
	}
}

// flush hands out what is in the buffer.
func (d *Drainer) flush() {
	if d.fill > 0 {
		d.emit(bytesOf(d.buffer[:d.fill]))
		d.counts.Received += uint64(d.fill / recordWords)
		d.fill, d.first = 0, 0
	}
}

// flushWhole hands out what is in the full buffer but a last record whose
// continuations are still to come: batches go their own ways.
func (d *Drainer) flushWhole() {
	end := d.fill
	if d.open(end) > 0 {
		for end -= recordWords; d.buffer[end+abi.ContinuationPointAt/8]&(attunev1.RecordContinuation<<flagsShift) != 0; end -= recordWords {
		}
	}
	rest := d.buffer[end:d.fill]
	d.fill = end
	d.flush()
	d.fill = copy(d.buffer, rest)
}

func saturatingAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
