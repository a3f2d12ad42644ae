// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/procid"
)

// watchTable holds which process is watched at which point. What was seen lies
// in memory shared with the kernel, so that reading a thousand counts every
// 50 ms takes no system call.
type watchTable struct {
	keys keyTables

	mu       sync.Mutex // guards what follows; comes before that of keys
	watched  *ebpf.Map
	watches  bpf.SharedArray[uprobesWatch]
	buckets  bpf.SharedArray[uint64]
	programs bpf.SharedArray[[capture.ProgramSize]byte]
	interval *ebpf.Variable
	current  uint32
	points   map[uint16]*definedPoint
	index    map[uprobesWatchKey]*watchEntry
	inBucket map[uint32][]uint32 // numbers of watches
	untold   map[uint32]uint64   // records that watches had lost, by process, when they were taken away
	waiting  waitingWatches
	// The free ones are used as queues: a program that still runs when its
	// watch is taken away must not find that memory in new hands.
	free         []uint32
	freePrograms []uint32
	// bootOffset is what /proc adds to start times in our time namespace, ns.
	bootOffset int64
}

// watchEntry is one watch.
type watchEntry struct {
	number  uint32
	program uint32 // number + 1; 0: none
	table   *keyTable
	start   uint64 // of the process, in clock ticks
	signed  bool   // what is summed up
	told    uint64 // lost records that takeLost has told of
	adopted bool   // the process had claimed it at its first hit
}

type definedPoint struct {
	config pointConfig
	files  int
}

// Constants of include/watch.h.
const (
	watchEvent      = 1 << 0
	watchCallSite   = 1 << 2
	watchCoarseTime = 1 << 4
)

// ErrTooManyWatches is returned when MaxWatches pairs of process and point are
// watched already, or 256 of those that capture.
var ErrTooManyWatches = errors.New("too many watched processes and points")

func (t *watchTable) open(from *uprobeMaps) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched, t.interval = from.Watched, from.Interval
	t.points = make(map[uint16]*definedPoint)
	t.index = make(map[uprobesWatchKey]*watchEntry)
	t.inBucket = make(map[uint32][]uint32)
	t.untold = make(map[uint32]uint64)
	t.keys.open(from.KeyTables)
	if t.watches, err = bpf.MapArray[uprobesWatch](from.Watches); err != nil {
		return fmt.Errorf("map watches: %w", err)
	}
	if t.buckets, err = bpf.MapArray[uint64](from.Buckets); err != nil {
		return fmt.Errorf("map buckets: %w", err)
	}
	if t.programs, err = bpf.MapArray[[capture.ProgramSize]byte](from.Programs); err != nil {
		return fmt.Errorf("map programs: %w", err)
	}
	if err := t.waiting.open(from); err != nil {
		return err
	}
	for i := range t.watches.Elements {
		t.free = append(t.free, uint32(i))
	}
	for i := range t.programs.Elements {
		t.freePrograms = append(t.freePrograms, uint32(i))
	}
	t.bootOffset, err = bpf.OwnBootOffset()
	return err
}

func (t *watchTable) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.points, t.index, t.free, t.freePrograms = nil, nil, nil, nil
	return errors.Join(t.watches.Unmap(), t.buckets.Unmap(), t.programs.Unmap(), t.keys.close(), t.waiting.expectations.Unmap())
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
	if !defined.config.equal(config) {
		return fmt.Errorf("%w: point %d has another delivery, predicate or program elsewhere", errSpec, point)
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
		t.unexpect(point)
	}
}

// Watch is what to watch in one process.
type Watch struct {
	// PID of the process, in our pid namespace.
	PID int
	// StartTicks is field 22 of its /proc/PID/stat: with the pid it names the
	// process for good, and one that is given the pid later is not watched.
	// 0: that of the process that has the pid now.
	StartTicks uint64
	// Point that is attached.
	Point uint16
	// Globals are the addresses, in this process, of the variables that
	// Globals() of the point's program lists, in that order.
	Globals []uint64
}

// WatchProcess is Watch of a point that captures no variables, in the process
// that has the pid now.
func (u *Uprobes) WatchProcess(pid int, point uint16) error {
	return u.Watch(Watch{PID: pid, Point: point})
}

// Watch begins to take the hits of an attached point in one process. Watching
// it already is no error. Children of the process are not watched. If the
// process has ended, the error is procid.ErrGone.
func (u *Uprobes) Watch(w Watch) error {
	if w.StartTicks == 0 {
		identity, err := procid.Of(w.PID)
		if err != nil {
			return fmt.Errorf("watch process %d: %w", w.PID, err)
		}
		w.StartTicks = identity.StartTicks
	}
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	key := uprobesWatchKey{Process: uint32(w.PID), Point: uint32(w.Point)}
	defined := t.points[w.Point]
	if defined == nil {
		return fmt.Errorf("watch process %d: point %d is not attached", w.PID, w.Point)
	}
	if known := t.index[key]; known != nil && known.start == w.StartTicks {
		return nil
	}
	// One of an earlier process with this pid, of whose end nobody has told.
	if err := t.remove(key); err != nil {
		return err
	}
	if err := t.add(key, w, defined.config); err != nil {
		return fmt.Errorf("watch process %d at point %d: %w", w.PID, w.Point, err)
	}
	return nil
}

func (t *watchTable) add(key uprobesWatchKey, w Watch, config pointConfig) error {
	if adopted, err := t.adopt(key, w, config); adopted || err != nil {
		return err
	}
	if len(t.free) == 0 {
		return ErrTooManyWatches
	}
	entry := &watchEntry{number: t.free[0], start: w.StartTicks, signed: config.program.Signed()}
	if err := t.addProgram(entry, config.program, w.Globals); err != nil {
		return err
	}
	watch := newWatch(config)
	watch.Process, watch.Point, watch.Program = key.Process, key.Point, entry.program
	watch.StartFrom = uint64(int64(w.StartTicks)*int64(bpf.ClockTick) - t.bootOffset)
	watch.StartTo = watch.StartFrom + uint64(bpf.ClockTick)
	t.watches.Elements[entry.number] = watch
	if err := t.watched.Put(&key, &entry.number); err != nil {
		t.dropProgram(entry)
		return err
	}
	t.free = t.free[1:]
	t.index[key] = entry
	t.list(key, entry.number)
	return nil
}

// addProgram gives the watch its program, if the point has one.
func (t *watchTable) addProgram(entry *watchEntry, program capture.Program, globals []uint64) error {
	if program.Empty() {
		return nil
	}
	if len(t.freePrograms) == 0 {
		return ErrTooManyWatches
	}
	var table uint32
	if program.Key != capture.None {
		var err error
		if entry.table, err = t.keys.add(program.Places()); err != nil {
			return err
		}
		table = entry.table.number
	}
	encoded, err := program.Encode(globals, table)
	if err != nil {
		t.keys.remove(entry.table)
		return err
	}
	number := t.freePrograms[0]
	t.freePrograms = t.freePrograms[1:]
	t.programs.Elements[number] = encoded
	entry.program = number + 1
	return nil
}

func (t *watchTable) dropProgram(entry *watchEntry) {
	t.keys.remove(entry.table)
	if entry.program != 0 {
		t.freePrograms = append(t.freePrograms, entry.program-1)
	}
}

func newWatch(config pointConfig) uprobesWatch {
	watch := uprobesWatch{
		SampleMask: config.sampleMask,
		MinValue:   config.minValue,
		MaxValue:   config.maxValue,
		Reserve:    recordBytes(config.program),
	}
	if config.events {
		watch.Flags = watchEvent
	}
	if config.coarseTime {
		watch.Flags |= watchCoarseTime
	}
	if config.program.Has(func(c capture.Capture) bool { return c.Source == capture.SourceCallSite }) {
		watch.Flags |= watchCallSite
	}
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

func (t *watchTable) remove(key uprobesWatchKey) error {
	entry := t.index[key]
	if entry == nil {
		return nil
	}
	if err := t.watched.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("unwatch process %d at point %d: %w", key.Process, key.Point, err)
	}
	delete(t.index, key)
	t.unlist(key, entry.number)
	if lost := t.newlyLost(entry); lost > 0 {
		t.untold[key.Process] += lost
	}
	t.dropProgram(entry)
	t.free = append(t.free, entry.number)
	return nil
}
