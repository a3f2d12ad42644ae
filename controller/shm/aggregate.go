// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"math/bits"

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
	// Count is the number of hits that passed the predicate.
	Count uint64
	// Sum is the sum of their values, modulo 2^64.
	Sum uint64
	// Min and Max are the least and greatest value; both 0 if none is known.
	// Hits on the border of two intervals may be missing here. If the point
	// was enabled during the interval, not for the first time, values from
	// before may show.
	Min, Max uint64
	// Histogram counts in bucket b the values of bit width b, the last one
	// everything above. For durations DMLib's buckets are powers of two of
	// ticks: each is counted as a whole in the bucket of its middle in
	// nanoseconds, so a value near a border may be one bucket off.
	Histogram [HistogramBuckets]uint64
}

// totals are the cumulative counts of one local point over all slots. They
// wrap, and so do their differences, which are therefore right as long as an
// interval has less than 2^32 hits per bucket.
type totals struct {
	count, sum uint64
	histogram  [HistogramBuckets]uint32
}

// pointSum is one reading of a local point over all slots.
type pointSum struct {
	totals
	min, max uint64 // min > max: no value in this interval
}

// Aggregates appends to dst one entry per point that is enabled with
// Aggregate, in the order of local indices, zero counts included: what was
// counted since the last call, or since the point was enabled. It then starts
// the next interval. s converts durations. Safe to call at any time, but the
// calls of several callers would share the counts among them. After Close it
// returns dst.
//
// Threads go on counting while they are read. A slot whose count changed
// meanwhile is read again, a few times: Sum and Histogram agree with Count but
// for the one hit that a thread is in the middle of. Threads that count faster
// than they can be read may leave a difference of some hits more, which are
// then missing from or added to the next interval.
func (m *Memory) Aggregates(dst []Aggregate, s Scale) []Aggregate {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return dst
	}
	m.control.Lock()
	defer m.control.Unlock()
	before := len(dst)
	for i := range m.points {
		p := &m.points[i]
		if !p.control.Aggregate || p.use.table() != noTable {
			continue
		}
		now := m.sumSlots(i)
		a := Aggregate{Point: p.control.Point, Local: i, Duration: p.control.Duration && p.control.Program.own(), Signed: p.control.Program.signed()}
		now.since(&p.last, &a)
		p.last = now.totals
		a.Unreadable = m.takeUnreadable(p.use)
		dst = append(dst, a)
	}
	dst = m.keyedAggregates(dst)
	for i := range dst[before:] {
		if a := &dst[before+i]; a.Duration {
			a.toNanoseconds(s)
		}
	}
	m.nextEpoch()
	return dst
}

// nextEpoch starts the next interval; 0 belongs to untouched aggregates.
func (m *Memory) nextEpoch() {
	next := max(load32(m.data, abi.HeaderEpochAt)+1, 1)
	m.clearExtremes(next)
	store32(m.data, abi.HeaderEpochAt, next)
}

// sumSlots adds up one local point over all slots that were ever in use, and the
// common one, to which threads without a slot add: a slot's counts stay when it changes
// hands, so that nothing is counted twice or lost. The caller holds life and control.
func (m *Memory) sumSlots(index int) pointSum {
	sum := pointSum{min: math.MaxUint64}
	epoch := load32(m.data, abi.HeaderEpochAt)
	for i := range m.usedSlots() {
		m.addSlot(&sum, i, index, epoch)
	}
	if load32(m.data, abi.HeaderCommonUsedAt) != 0 {
		m.addSlot(&sum, m.geometry.Slots, index, epoch)
	}
	return sum
}

// addSlot adds what one slot has of a local point.
func (m *Memory) addSlot(sum *pointSum, slot, index int, epoch uint32) {
	at := m.slotAt(slot) + abi.SlotAggregatesAt + index*abi.AggregateBytes
	if load64(m.data, at+abi.AggregateCountAt) == 0 {
		return // never hit by any thread of this slot
	}
	sum.add(m.readTotals(at, abi.AggregateHistogramAt))
	if load32(m.data, at+abi.AggregateEpochAt) == epoch {
		sum.min = min(sum.min, load64(m.data, at+abi.AggregateMinAt))
		sum.max = max(sum.max, load64(m.data, at+abi.AggregateMaxAt))
	}
}

// readAttempts bounds how often one slot's counts are read for a reading that
// no hit disturbed. One takes about 50 ns; a reader that lost its CPU in the
// middle of the first has its second undisturbed.
const readAttempts = 4

// readTotals reads the aggregate at the offset at, whose histogram lies so far
// behind it. Its thread counts with its last store, so an unchanged count means
// that no hit ended meanwhile. Of readings that were all disturbed it returns the
// one with the fewest hits meanwhile.
func (m *Memory) readTotals(at, histogram int) totals {
	var best totals
	fewest := uint64(math.MaxUint64)
	before := load64(m.data, at+abi.AggregateCountAt)
	for range readAttempts {
		t := totals{sum: load64(m.data, at+abi.AggregateSumAt)}
		for b := range t.histogram {
			t.histogram[b] = load32(m.data, at+histogram+4*b)
		}
		t.count = load64(m.data, at+abi.AggregateCountAt)
		if hits := t.count - before; hits < fewest {
			best, fewest = t, hits
		}
		if fewest == 0 {
			break
		}
		before = t.count
	}
	return best
}

func (t *totals) add(other totals) {
	t.count += other.count
	t.sum += other.sum
	for b, n := range other.histogram {
		t.histogram[b] += n
	}
}

// signBit is what tells the order of signed numbers from that of their bits.
const signBit = 1 << 63

// since writes the difference to an earlier reading. Extremes of signed values
// are kept with their sign bit flipped.
func (now *pointSum) since(last *totals, a *Aggregate) {
	a.Count, a.Sum = now.count-last.count, now.sum-last.sum
	for b := range now.histogram {
		a.Histogram[b] = uint64(now.histogram[b] - last.histogram[b])
	}
	if a.Count > 0 && now.min <= now.max {
		a.Min, a.Max = now.min, now.max
		if a.Signed {
			a.Min, a.Max = a.Min^signBit, a.Max^signBit
		}
	}
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
