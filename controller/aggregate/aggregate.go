// SPDX-License-Identifier: Apache-2.0

// Package aggregate reads what DMLib and the BPF programs count of the hits of
// measure points: the aggregates of dmlib/include/attune/aggregate.h, and tables of
// them by key. Package shm has them in the memory shared with a process, package
// uprobe in that shared with the kernel. Both count on while this package reads.
//
// The package holds no lock. Whoever reads and resets the aggregates of one memory
// does both under a mutex of its own.
package aggregate

import (
	"sync/atomic"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/hits"
)

// Buckets is the number of buckets of a histogram.
const Buckets = abi.HistBuckets

// Counts is what was counted: up to a reading, or between two.
type Counts struct {
	// Count is the number of hits.
	Count uint64
	// Sum is the sum of their values, modulo 2^64.
	Sum uint64
	// Histogram counts values of bit width b in bucket b, the last one everything
	// above, and of signed values all up to 0 in bucket 0. What is counted up to a
	// reading wraps. A difference is right as long as fewer than 2^32 hits fall into
	// a bucket meanwhile.
	Histogram [Buckets]uint32
	// Min and Max are the least and greatest value, if Known; else both are 0.
	// Hits on the border of two intervals may be missing here.
	Min, Max uint64
	Known    bool
}

// Add adds what another aggregate of the same values counted.
func (c *Counts) Add(other *Counts) {
	if other.Count == 0 {
		return // of most slots of threads
	}
	c.Count += other.Count
	c.Sum += other.Sum
	for b := range other.Histogram {
		c.Histogram[b] += other.Histogram[b]
	}
	switch {
	case !other.Known:
	case !c.Known:
		c.Min, c.Max, c.Known = other.Min, other.Max, true
	default:
		c.Min, c.Max = min(c.Min, other.Min), max(c.Max, other.Max)
	}
}

// Since returns what was counted since an earlier reading. The extremes are those of
// this one.
func (c Counts) Since(last *Counts) Counts {
	c.Count -= last.Count
	c.Sum -= last.Sum
	for b := range last.Histogram {
		c.Histogram[b] -= last.Histogram[b]
	}
	if c.Count == 0 {
		c.Min, c.Max, c.Known = 0, 0, false
	}
	return c
}

// Values returns the counts as what is known of the values, with the number of hits
// that had none.
func (c *Counts) Values(unreadable uint64) *hits.Sum {
	s := &hits.Sum{
		Count: c.Count, Unreadable: unreadable, Total: c.Sum, Histogram: make([]uint64, Buckets),
		Least: c.Min, Greatest: c.Max, Bounded: c.Known,
	}
	for b, n := range c.Histogram {
		s.Histogram[b] = uint64(n)
	}
	return s
}

// RestoreSigns turns the extremes of signed values, which are read in the order of
// unsigned ones, into two's complement.
func (c *Counts) RestoreSigns() {
	if c.Known {
		c.Min, c.Max = c.Min^abi.Sign, c.Max^abi.Sign
	}
}

// Memory is a struct attune_aggregate where it is counted. Every access is atomic.
type Memory [abi.AggregateBytes / 8]uint64

func (m *Memory) load(at int) uint64 { return atomic.LoadUint64(&m[at/8]) }

// readAttempts bounds how often one aggregate is read for a reading that no hit
// disturbed. One takes about 50 ns; a reader that lost its CPU in the middle of the
// first has its second undisturbed.
const readAttempts = 4

// Read fills c in with the counts, and the extremes of the first of the intervals in which any
// are known. A hit is counted last, so an unchanged count means that no hit ended
// meanwhile. Of readings that were all disturbed Read returns the one with the fewest
// hits meanwhile: some hits are then missing from the sum or the histogram, or too
// many there, and the next reading makes up for it.
func (m *Memory) Read(c *Counts, intervals ...uint32) {
	before := m.load(abi.AggregateCountAt)
	if before == 0 { // no hit yet
		*c = Counts{}
		return
	}
	m.readCounts(c)
	fewest, last := c.Count-before, c.Count
	for attempt := 1; attempt < readAttempts && fewest > 0; attempt++ {
		var again Counts
		m.readCounts(&again)
		if hits := again.Count - last; hits < fewest {
			*c, fewest = again, hits
		}
		last = again.Count
	}
	c.Min, c.Max, c.Known = 0, 0, false
	for _, interval := range intervals {
		at := 8 * int(interval&1)
		least, greatest := ^m.load(abi.AggregateLeastAt+at), m.load(abi.AggregateGreatestAt+at)
		if least <= greatest {
			c.Min, c.Max, c.Known = least, greatest, true
			break
		}
	}
}

func (m *Memory) readCounts(c *Counts) {
	c.Sum = m.load(abi.AggregateSumAt)
	for b := 0; b < Buckets; b += 2 {
		two := m.load(abi.AggregateHistogramAt + 4*b)
		c.Histogram[b], c.Histogram[b+1] = uint32(two), uint32(two>>32)
	}
	c.Count = m.load(abi.AggregateCountAt)
}

// Reset clears the extremes of an interval that has not begun. It does not write where
// they are clear already, for the memory may be a thread's own.
func (m *Memory) Reset(interval uint32) {
	at := 8 * int(interval&1)
	for _, word := range []int{abi.AggregateLeastAt + at, abi.AggregateGreatestAt + at} {
		if m.load(word) != 0 {
			atomic.StoreUint64(&m[word/8], 0)
		}
	}
}

// Table is the places of a table of keys.
type Table []Memory

// Each calls visit with every key that has a place, in no order, and the number of the
// place.
func (t Table) Each(visit func(place int, key uint64, m *Memory)) {
	for i := range t {
		t.Visit(i, visit)
	}
}

// Visit is Each for one place.
func (t Table) Visit(place int, visit func(place int, key uint64, m *Memory)) {
	key := t[place].load(abi.AggregateKeyAt)
	switch {
	case key == 0:
	case place == 0: // says only that it is taken
		visit(place, 0, &t[place])
	default:
		visit(place, key, &t[place])
	}
}
