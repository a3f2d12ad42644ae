// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"
	"math"
	"sync/atomic"
)

// HistogramBuckets is the number of buckets of Aggregate.Histogram.
const HistogramBuckets = len(uprobesAggregate{}.Histogram)

// Aggregate is what was seen at one point in one process, with one key if the
// point has keys.
type Aggregate struct {
	// Count, Sum and Histogram have grown since the process is watched. Sum
	// wraps around; bucket b counts values of bit width b, the last one all
	// above, and the first one also all negative ones. Of points that deliver
	// records only Count and Lost are kept.
	Count, Sum uint64
	Histogram  [HistogramBuckets]uint64
	// Min and Max belong to the Interval that was asked for; in two's complement
	// if Signed. Without a hit in it they are not Known.
	Min, Max uint64
	// Known says that Min and Max are.
	Known bool
	// Signed says that values are in two's complement.
	Signed bool
	// Lost is the number of records that found the ring full. Not by key.
	Lost uint64
	// Unreadable is the number of hits that are in none of these figures,
	// because the value or the key could not be read. Not by key.
	Unreadable uint64
}

// Interval is one of the two whose extremes are kept.
type Interval uint8

const (
	// Closed is the interval that NextInterval closed last. Hits that came while
	// it did so may be in the counts already, and are in the next one's extremes:
	// where there are no others, these are read.
	Closed Interval = iota
	// Running is the interval that began then.
	Running
)

// signBit is flipped in the extremes of signed values.
const signBit = 1 << 63

// ReadAggregate fills in what was seen so far, of points with keys what found
// no room with its key; it makes no system call. It returns false if the
// process is not watched at the point.
func (u *Uprobes) ReadAggregate(pid int, point uint16, of Interval, into *Aggregate) bool {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.index[uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}]
	if entry == nil {
		return false
	}
	watch := &t.watches.Elements[entry.number]
	into.read((*uprobesAggregate)(&watch.Sums), entry.signed, of, t.current)
	into.Lost = atomic.LoadUint64(&watch.Lost)
	into.Unreadable = atomic.LoadUint64(&watch.Unreadable)
	return true
}

// ReadKeys hands over what was seen so far with each key, in no order; visit
// must not keep the aggregate nor call Uprobes. It makes no system call and
// does nothing if the process is not watched at the point or the point has no
// keys.
func (u *Uprobes) ReadKeys(pid int, point uint16, of Interval, visit func(key uint64, a *Aggregate)) {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.index[uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}]
	if entry == nil || entry.table == nil {
		return
	}
	var into Aggregate
	entry.table.each(func(key uint64, sums *uprobesAggregate) {
		into.read(sums, entry.signed, of, t.current)
		visit(key, &into)
	})
}

// read takes sums with the extremes of an interval; running is the number of the
// one that runs.
func (a *Aggregate) read(sums *uprobesAggregate, signed bool, of Interval, running uint32) {
	a.Count = atomic.LoadUint64(&sums.Count)
	a.Sum = atomic.LoadUint64(&sums.Sum)
	for i := range a.Histogram {
		a.Histogram[i] = atomic.LoadUint64(&sums.Histogram[i])
	}
	a.Known, a.Signed = false, signed
	if of == Closed {
		a.readExtremes(sums, running-1)
	}
	if !a.Known {
		a.readExtremes(sums, running)
	}
	if signed {
		a.Min, a.Max = a.Min^signBit, a.Max^signBit
	}
}

func (a *Aggregate) readExtremes(sums *uprobesAggregate, interval uint32) {
	extremes := &sums.Extremes[interval&1]
	a.Min, a.Max = atomic.LoadUint64(&extremes.Min), atomic.LoadUint64(&extremes.Max)
	a.Known = a.Min <= a.Max
}

// NextInterval closes the running interval of all aggregates and opens the
// next.
func (u *Uprobes) NextInterval() error {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches.Elements == nil {
		return nil
	}
	next := t.current + 1
	for _, entry := range t.index {
		resetExtremes((*uprobesAggregate)(&t.watches.Elements[entry.number].Sums), next)
	}
	t.keys.reset(next)
	if err := t.interval.Set(next); err != nil {
		return fmt.Errorf("open interval: %w", err)
	}
	t.current = next
	return nil
}

// resetExtremes empties those of an interval that has not begun.
func resetExtremes(sums *uprobesAggregate, interval uint32) {
	extremes := &sums.Extremes[interval&1]
	atomic.StoreUint64(&extremes.Min, math.MaxUint64)
	atomic.StoreUint64(&extremes.Max, 0)
}
