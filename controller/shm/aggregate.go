// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"
	"unsafe"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// Aggregate is what one measure point counted in one interval, all threads
// together. Values are nanoseconds if Duration, else in the point's own unit.
type Aggregate struct {
	// Point is the session's index, Local the one in this process.
	Point uint16
	Local int
	// Duration tells the unit of the values.
	Duration bool
	// Signed says that values are in two's complement.
	Signed bool
	// Key is the captured key of these hits, if HasKey. A point with keys has
	// one entry per key that was hit, with local point -1, and one without:
	// what came with keys that found no place.
	Key    uint64
	HasKey bool
	// Unreadable is the number of hits that are in no figure, because the value
	// or the key could not be read. With keys it stands where HasKey is not.
	Unreadable uint64
	// Counts is of the hits that passed the predicate. For durations DMLib's buckets
	// are powers of two of ticks: each is counted as a whole in the bucket of its
	// middle in nanoseconds, so a value near a border may be one bucket off.
	aggregate.Counts
}

// Aggregates appends to dst one entry per point that is enabled with
// Aggregate, in the order of local indices, zero counts included: what was
// counted since the last call, or since the point was enabled. It starts the next
// interval first, so that hits which come meanwhile belong there. s converts
// durations. Safe to call at any time, but the calls of several callers would share
// the counts among them. After Close it returns dst.
//
// Threads go on counting while they are read; see [aggregate.Memory.Read].
func (m *Memory) Aggregates(dst []Aggregate, s Scale) []Aggregate {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return dst
	}
	m.control.Lock()
	defer m.control.Unlock()
	before, next := len(dst), m.nextInterval()
	for i := range m.points {
		p := &m.points[i]
		if !p.inSlots() {
			continue
		}
		a := Aggregate{Point: p.control.Point, Local: i, Duration: p.control.Duration && p.control.Program.own(), Signed: p.control.Program.signed()}
		a.Counts = m.sumSlots(i, next-1, next)
		a.since(&p.last)
		a.Unreadable = m.takeUnreadable(p.use)
		dst = append(dst, a)
	}
	dst = m.keyedAggregates(dst, next)
	for i := range dst[before:] {
		if a := &dst[before+i]; a.Duration {
			a.toNanoseconds(s)
		}
	}
	return dst
}

// inSlots says that threads count the point's hits in their slots.
func (p *point) inSlots() bool { return p.control.Aggregate && p.use.table() == noTable }

// since leaves what was counted since the last reading, which this one becomes.
func (a *Aggregate) since(last *aggregate.Counts) {
	now := a.Counts
	a.Counts = now.Since(last)
	if a.Signed {
		a.RestoreSigns()
	}
	*last = now
}

// nextInterval starts the next interval and returns its number.
func (m *Memory) nextInterval() uint32 {
	next := load32(m.data, abi.HeaderEpochAt) + 1
	reset := func(a *aggregate.Memory) { a.Reset(next) }
	for i := range m.points {
		if m.points[i].inSlots() {
			m.eachSlot(i, reset)
		}
	}
	m.eachKeyed(reset)
	store32(m.data, abi.HeaderEpochAt, next)
	return next
}

// eachSlot calls f with the aggregate of a local point in every slot that was ever in
// use, and in the common one, to which threads without a slot add: a slot's counts stay
// when it changes hands, so that nothing is counted twice or lost. The caller holds life
// and control.
func (m *Memory) eachSlot(index int, f func(*aggregate.Memory)) {
	slots := m.usedSlots()
	for i := range slots {
		f(m.aggregateAt(i, index))
	}
	if load32(m.data, abi.HeaderCommonUsedAt) != 0 {
		f(m.aggregateAt(m.geometry.Slots, index))
	}
}

func (m *Memory) aggregateAt(slot, index int) *aggregate.Memory {
	return &m.aggregates(m.slotAt(slot)+abi.SlotAggregatesAt+index*abi.AggregateBytes, 1)[0]
}

// aggregates views so many aggregates at an offset of the mapping.
func (m *Memory) aggregates(at, count int) aggregate.Table {
	return unsafe.Slice((*aggregate.Memory)(unsafe.Pointer(&m.data[at : at+count*abi.AggregateBytes][0])), count)
}

// sumSlots adds up one local point over all slots.
func (m *Memory) sumSlots(index int, intervals ...uint32) (sum aggregate.Counts) {
	var one aggregate.Counts
	m.eachSlot(index, func(a *aggregate.Memory) {
		a.Read(&one, intervals...)
		sum.Add(&one)
	})
	return sum
}

// toNanoseconds converts an aggregate of durations.
func (a *Aggregate) toNanoseconds(s Scale) {
	a.Sum, a.Min, a.Max = s.Duration(a.Sum), s.Duration(a.Min), s.Duration(a.Max)
	ticks := a.Histogram
	clear(a.Histogram[:])
	for b, n := range ticks {
		a.Histogram[durationBucket(b, s)] += n
	}
}

// durationBucket is the bucket in nanoseconds of the middle of bucket b in
// ticks.
func durationBucket(b int, s Scale) int {
	middle := uint64(b) // buckets 0 and 1 hold one value each
	if b > 1 {
		middle = 3 << (b - 2)
	}
	return min(bits.Len64(s.Duration(middle)), HistogramBuckets-1)
}
