// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// watchTable holds which process is watched at which point, and reads what was
// seen. The counts lie in memory shared with the kernel, so that reading a
// thousand of them every 50 ms takes no system call.
type watchTable struct {
	mu       sync.Mutex
	watched  *ebpf.Map
	memory   []byte
	watches  []uprobesWatch // in memory
	interval *ebpf.Variable
	current  uint32
	points   map[uint16]*definedPoint
	index    map[uprobesWatchKey]uint32
	// free is used as a queue: a program that still runs when its watch is
	// taken away must not find that memory in new hands.
	free []uint32
}

type definedPoint struct {
	config pointConfig
	files  int
}

// watchEvent is WATCH_EVENT of include/watch.h.
const watchEvent = 1 << 0

// ErrTooManyWatches is returned when MaxWatches pairs of process and point are
// watched already.
var ErrTooManyWatches = errors.New("too many watched processes and points")

func (t *watchTable) open(watched, watches *ebpf.Map, interval *ebpf.Variable) error {
	size := int(watches.MaxEntries()) * int(unsafe.Sizeof(uprobesWatch{}))
	memory, err := unix.Mmap(watches.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map watches: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched, t.memory, t.interval = watched, memory, interval
	t.watches = unsafe.Slice((*uprobesWatch)(unsafe.Pointer(&memory[0])), watches.MaxEntries())
	t.points = make(map[uint16]*definedPoint)
	t.index = make(map[uprobesWatchKey]uint32)
	for i := range watches.MaxEntries() {
		t.free = append(t.free, i)
	}
	return nil
}

func (t *watchTable) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	memory := t.memory
	t.memory, t.watches, t.points, t.index, t.free = nil, nil, nil, nil, nil
	return unix.Munmap(memory)
}

// define notes that the point is attached to one more file.
func (t *watchTable) define(point uint16, config pointConfig) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defined := t.points[point]
	if defined == nil {
		defined = &definedPoint{config: config}
		t.points[point] = defined
	}
	if defined.config != config {
		return fmt.Errorf("%w: point %d has another delivery or predicate elsewhere", errSpec, point)
	}
	defined.files++
	return nil
}

func (t *watchTable) undefine(point uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defined := t.points[point]
	if defined == nil {
		return
	}
	if defined.files--; defined.files == 0 {
		delete(t.points, point)
	}
}

// WatchProcess begins to take the hits of an attached point in one process.
// Watching it already is no error. Children of the process are not watched.
func (u *Uprobes) WatchProcess(pid int, point uint16) error {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	key := uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}
	defined := t.points[point]
	if defined == nil {
		return fmt.Errorf("watch process %d: point %d is not attached", pid, point)
	}
	if _, ok := t.index[key]; ok {
		return nil
	}
	if len(t.free) == 0 {
		return fmt.Errorf("watch process %d: %w", pid, ErrTooManyWatches)
	}
	slot := t.free[0]
	t.watches[slot] = newWatch(defined.config)
	if err := t.watched.Put(&key, &slot); err != nil {
		return fmt.Errorf("watch process %d at point %d: %w", pid, point, err)
	}
	t.free = t.free[1:]
	t.index[key] = slot
	return nil
}

func newWatch(config pointConfig) uprobesWatch {
	watch := uprobesWatch{
		SampleMask: config.sampleMask,
		MinValue:   config.minValue,
		MaxValue:   config.maxValue,
	}
	if config.events {
		watch.Flags = watchEvent
	}
	watch.Extremes[0].Min, watch.Extremes[1].Min = math.MaxUint64, math.MaxUint64
	return watch
}

// UnwatchProcess stops taking hits; what was counted is gone. It is no error
// if the process was not watched.
func (u *Uprobes) UnwatchProcess(pid int, point uint16) error {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remove(uprobesWatchKey{Process: uint32(pid), Point: uint32(point)})
}

// ForgetProcess stops taking hits of a process at all points. It must be
// called when a process has ended, before its id can be given to another.
func (u *Uprobes) ForgetProcess(pid int) error {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for key := range t.index {
		if key.Process == uint32(pid) {
			errs = append(errs, t.remove(key))
		}
	}
	return errors.Join(errs...)
}

func (t *watchTable) remove(key uprobesWatchKey) error {
	slot, ok := t.index[key]
	if !ok {
		return nil
	}
	if err := t.watched.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("unwatch process %d at point %d: %w", key.Process, key.Point, err)
	}
	delete(t.index, key)
	t.free = append(t.free, slot)
	return nil
}

// HistogramBuckets is the number of buckets of Aggregate.Histogram.
const HistogramBuckets = len(uprobesWatch{}.Histogram)

// Aggregate is what was seen at one point in one process.
type Aggregate struct {
	// Count, Sum and Histogram have grown since WatchProcess. Sum wraps
	// around; bucket b counts values of bit width b, the last one all above.
	Count, Sum uint64
	Histogram  [HistogramBuckets]uint64
	// Min and Max belong to the interval that NextInterval closed last. If
	// it had no hit, Min > Max.
	Min, Max uint64
	// Lost is the number of records that found the ring full.
	Lost uint64
}

// ReadAggregate fills in what was seen so far; it makes no system call. It
// returns false if the process is not watched at the point.
func (u *Uprobes) ReadAggregate(pid int, point uint16, into *Aggregate) bool {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	slot, ok := t.index[uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}]
	if !ok {
		return false
	}
	watch := &t.watches[slot]
	into.Count = atomic.LoadUint64(&watch.Count)
	into.Sum = atomic.LoadUint64(&watch.Sum)
	into.Lost = atomic.LoadUint64(&watch.Lost)
	closed := &watch.Extremes[(t.current-1)&1]
	into.Min, into.Max = atomic.LoadUint64(&closed.Min), atomic.LoadUint64(&closed.Max)
	for i := range into.Histogram {
		into.Histogram[i] = atomic.LoadUint64(&watch.Histogram[i])
	}
	return true
}

// NextInterval closes the running interval of all aggregates and opens the
// next: afterwards ReadAggregate gives the closed one's Min and Max.
func (u *Uprobes) NextInterval() error {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory == nil {
		return nil
	}
	for _, slot := range t.index {
		next := &t.watches[slot].Extremes[(t.current+1)&1]
		atomic.StoreUint64(&next.Min, math.MaxUint64)
		atomic.StoreUint64(&next.Max, 0)
	}
	if err := t.interval.Set(t.current + 1); err != nil {
		return fmt.Errorf("open interval: %w", err)
	}
	t.current++
	return nil
}
