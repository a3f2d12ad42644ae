// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// ofRest stands for a place among the readings of a table.
const ofRest = -1

// Aggregate is what one measure point counted in one interval, all threads
// together. Values are nanoseconds if Duration, else in the point's own unit.
type Aggregate struct {
	// Point is the session's index.
	Point uint16
	// Duration tells the unit of the values.
	Duration bool
	// Signed says that values are in two's complement.
	Signed bool
	// Key is the captured key of these hits, if HasKey. A point with keys has
	// one entry per key that was hit, and one without:
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
func (p *Points) Aggregates(dst []Aggregate, s Scale) []Aggregate {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.data == nil {
		return dst
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, counted := len(dst), p.countedInSlots(make([]int, 0, PointCount))
	next := p.nextInterval(counted)
	dst = p.slotAggregates(dst, counted, next)
	dst = p.keyedAggregates(dst, next)
	for i := range dst[before:] {
		if a := &dst[before+i]; a.Duration {
			a.toNanoseconds(s)
		}
	}
	return dst
}

// countedInSlots appends the local points whose hits are counted in slots, in ascending order.
func (p *Points) countedInSlots(points []int) []int {
	for i := range p.points {
		if p.points[i].inSlots() {
			points = append(points, i)
		}
	}
	return points
}

// slotAggregates appends what was counted in slots since the last call.
func (p *Points) slotAggregates(dst []Aggregate, counted []int, next uint32) []Aggregate {
	before := len(dst)
	for _, local := range counted {
		c := &p.points[local].control
		dst = append(dst, Aggregate{Point: c.Point, Duration: c.Duration && c.Program.own(), Signed: c.Program.signed()})
	}
	read := dst[before:]
	var one aggregate.Counts
	p.eachAggregate(counted, func(i int, a *aggregate.Memory) {
		a.Read(&one, next-1, next)
		read[i].Add(&one)
	})
	for i, local := range counted {
		pt := &p.points[local]
		read[i].since(&pt.last)
		read[i].Unreadable = p.programs.takeUnreadable(pt.use)
	}
	return dst
}

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
func (p *Points) nextInterval(counted []int) uint32 {
	next := load32(p.data, abi.HeaderEpochAt) + 1
	p.eachAggregate(counted, func(_ int, a *aggregate.Memory) { a.Reset(next) })
	for _, u := range p.programs.inUse {
		if u.keys != nil {
			u.keys.each(func(a *aggregate.Memory) { a.Reset(next) })
		}
	}
	store32(p.data, abi.HeaderEpochAt, next)
	return next
}

// keyedAggregates appends what was counted by key since the last call. The
// caller holds life and mu.
func (p *Points) keyedAggregates(dst []Aggregate, next uint32) []Aggregate {
	for _, u := range p.programs.inUse {
		if u.keys == nil {
			continue
		}
		since := func(place int, sums *aggregate.Memory) Aggregate {
			a := Aggregate{Point: u.point, Duration: u.duration && u.program.own(), Signed: u.program.signed()}
			last := u.last[place]
			sums.Read(&a.Counts, next-1, next)
			a.since(&last)
			u.last[place] = last
			return a
		}
		rest := since(ofRest, u.keys.rest())
		rest.Unreadable = p.programs.takeUnreadable(u)
		dst = append(dst, rest)
		u.keys.eachPlace(func(place int, key uint64, sums *aggregate.Memory) {
			if a := since(place, sums); a.Count > 0 {
				a.Key, a.HasKey = key, true
				dst = append(dst, a)
			}
		})
	}
	return dst
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
