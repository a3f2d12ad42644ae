// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/attune-hpc/attune/controller/aggregate"
)

// Aggregate is what was seen at one point in one process, with one key if the
// point has keys.
type Aggregate struct {
	// Counts has grown since the process is watched, but for the extremes: those
	// belong to the Interval that was asked for. Of points that deliver records only
	// Count and Lost are kept.
	aggregate.Counts
	// Watch names the watch: when the process is watched anew, counts begin anew, with
	// another name.
	Watch uint32
	// Signed says that values are in two's complement.
	Signed bool
	// Lost is the number of records that found the ring full, and of calls of which the
	// kernel did not tell both ends: of those perhaps too many, which began before the process
	// was watched. Not by key.
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

// ReadAggregate fills in what was seen so far, of points with keys what found
// no room with its key; it makes no system call. It returns false if the
// process is not watched at the point.
func (t *watchTable) ReadAggregate(pid int, point uint16, of Interval, into *Aggregate) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.index[uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}]
	if entry == nil {
		return false
	}
	watch := &t.memory.watches.Elements[entry.number]
	*into = t.readSums(sumsOf(watch), entry, of)
	into.Lost = atomic.LoadUint64(&watch.Lost)
	into.Unreadable = atomic.LoadUint64(&watch.Unreadable)
	return true
}

func sumsOf(watch *uprobesWatch) *aggregate.Memory {
	return (*aggregate.Memory)(unsafe.Pointer(&watch.Sums))
}

// readSums reads sums of a watch with the extremes of an interval. The caller holds mu.
func (t *watchTable) readSums(sums *aggregate.Memory, entry *watchEntry, of Interval) Aggregate {
	intervals := []uint32{t.current - 1, t.current}
	if of == Running {
		intervals = intervals[1:]
	}
	a := Aggregate{Watch: t.memory.watches.Elements[entry.number].Era, Signed: entry.signed}
	sums.Read(&a.Counts, intervals...)
	if a.Signed {
		a.RestoreSigns()
	}
	return a
}

// NextInterval closes the running interval of all aggregates and opens the
// next.
func (t *watchTable) NextInterval() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory.watches.Elements == nil {
		return nil
	}
	next := t.current + 1
	for _, entry := range t.index {
		sumsOf(&t.memory.watches.Elements[entry.number]).Reset(next)
	}
	t.memory.keys.reset(next)
	if err := t.interval.Set(next); err != nil {
		return fmt.Errorf("open interval: %w", err)
	}
	t.current = next
	return nil
}
