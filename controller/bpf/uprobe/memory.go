// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/procid"
)

// bucketCount is WATCH_BUCKETS of include/watch.h.
const bucketCount = 4096

// watchBucket is watch_bucket() of include/watch.h.
func watchBucket(key uprobesWatchKey) uint32 {
	return (key.Process*2654435761 ^ key.Point*2246822519) >> 20 % bucketCount
}

// watchMemory is the memory shared with the kernel in which watches lie, each with
// its program and its table of keys. What was seen lies there, too, so that reading
// a thousand counts every 50 ms takes no system call. Guarded by watchTable.mu.
type watchMemory struct {
	watched  *ebpf.Map
	watches  bpf.SharedArray[uprobesWatch]
	programs bpf.SharedArray[[capture.ProgramSize]byte]
	keys     keyTables
	// buckets has the first watch of each bucket, number + 1; 0: none.
	buckets  bpf.SharedArray[uint64]
	inBucket map[uint32][]uint32 // numbers of watches
	// The free ones are used as queues: a program that still runs when its
	// watch is taken away must not find that memory in new hands.
	free         []uint32
	freePrograms []uint32
	era          uint32 // of the watch made last
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

// Constants of include/watch.h.
const (
	watchEvent      = 1 << 0
	watchCallSite   = 1 << 2
	watchCoarseTime = 1 << 4
)

func (m *watchMemory) open(from *uprobeMaps) (err error) {
	m.watched, m.inBucket = from.Watched, make(map[uint32][]uint32)
	m.keys.open(from)
	if m.watches, err = bpf.MapArray[uprobesWatch](from.Watches); err != nil {
		return fmt.Errorf("map watches: %w", err)
	}
	if m.buckets, err = bpf.MapArray[uint64](from.Buckets); err != nil {
		return fmt.Errorf("map buckets: %w", err)
	}
	if m.programs, err = bpf.MapArray[[capture.ProgramSize]byte](from.Programs); err != nil {
		return fmt.Errorf("map programs: %w", err)
	}
	for i := range m.watches.Elements {
		m.free = append(m.free, uint32(i))
	}
	for i := range m.programs.Elements {
		m.freePrograms = append(m.freePrograms, uint32(i))
	}
	m.bootOffset, err = bpf.OwnBootOffset()
	return err
}

func (m *watchMemory) close() error {
	m.free, m.freePrograms = nil, nil
	return errors.Join(m.watches.Unmap(), m.buckets.Unmap(), m.programs.Unmap(), m.keys.close())
}

// add makes a watch that programs find.
func (m *watchMemory) add(key uprobesWatchKey, w Watch, mapped *mappedObjects, config pointConfig) (*watchEntry, error) {
	if len(m.free) == 0 {
		return nil, ErrTooManyWatches
	}
	entry := &watchEntry{number: m.free[0], start: w.StartTicks, signed: config.program.Signed()}
	if err := m.addProgram(entry, config.program, w.Globals, mapped); err != nil {
		return nil, err
	}
	watch := m.newWatch(config)
	watch.Process, watch.Point, watch.Program = key.Process, key.Point, entry.program
	watch.StartFrom = uint64(int64(w.StartTicks)*int64(procid.Tick) - m.bootOffset)
	watch.StartTo = watch.StartFrom + uint64(procid.Tick)
	m.watches.Elements[entry.number] = watch
	if err := m.list(key, entry.number); err != nil {
		m.dropProgram(entry)
		return nil, err
	}
	m.free = m.free[1:]
	return entry, nil
}

// list lets the programs find a watch.
func (m *watchMemory) list(key uprobesWatchKey, number uint32) error {
	if err := m.watched.Put(&key, &number); err != nil {
		return err
	}
	bucket := watchBucket(key)
	m.inBucket[bucket] = append(m.inBucket[bucket], number)
	m.show(bucket)
	return nil
}

// show writes the first watch of a bucket to where the programs look; of others
// they ask the hash map.
func (m *watchMemory) show(bucket uint32) {
	var first uint64
	if numbers := m.inBucket[bucket]; len(numbers) > 0 {
		first = uint64(numbers[0]) + 1
	}
	atomic.StoreUint64(&m.buckets.Elements[bucket], first)
}

// remove takes a watch away, and returns what it had lost that nobody was told.
func (m *watchMemory) remove(key uprobesWatchKey, entry *watchEntry) (lost uint64, err error) {
	if err := m.watched.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, err
	}
	bucket := watchBucket(key)
	left := slices.DeleteFunc(m.inBucket[bucket], func(n uint32) bool { return n == entry.number })
	m.inBucket[bucket] = left
	if len(left) == 0 {
		delete(m.inBucket, bucket)
	}
	m.show(bucket)
	// A program that has found it just now sees that it is nobody's.
	atomic.StoreUint32(&m.watches.Elements[entry.number].Process, 0)
	lost = m.newlyLost(entry)
	m.dropProgram(entry)
	m.free = append(m.free, entry.number)
	return lost, nil
}

// newlyLost returns what a watch has lost since the last call.
func (m *watchMemory) newlyLost(entry *watchEntry) uint64 {
	lost := atomic.LoadUint64(&m.watches.Elements[entry.number].Lost)
	before := entry.told
	entry.told = lost
	return lost - before
}

// startTicks is when the process of a watch started, as /proc has it.
func (m *watchMemory) startTicks(watch *uprobesWatch) uint64 {
	return uint64(int64(watch.StartFrom)+m.bootOffset) / uint64(procid.Tick)
}

// addProgram gives the watch its program, if the point has one.
func (m *watchMemory) addProgram(entry *watchEntry, program capture.Program, globals []uint64, mapped *mappedObjects) error {
	if program.Empty() {
		return nil
	}
	if len(m.freePrograms) == 0 {
		return ErrTooManyWatches
	}
	var table uint32
	if program.Key != capture.None {
		var err error
		if entry.table, err = m.keys.add(program, mapped); err != nil {
			return err
		}
		table = entry.table.number
	}
	encoded, err := program.Encode(globals, table)
	if err != nil {
		m.keys.remove(entry.table)
		return err
	}
	number := m.freePrograms[0]
	m.freePrograms = m.freePrograms[1:]
	m.programs.Elements[number] = encoded
	entry.program = number + 1
	return nil
}

func (m *watchMemory) dropProgram(entry *watchEntry) {
	m.keys.remove(entry.table)
	if entry.program != 0 {
		m.freePrograms = append(m.freePrograms, entry.program-1)
	}
}

// newWatch makes a watch that is nobody's yet, with an era of its own.
func (m *watchMemory) newWatch(config pointConfig) uprobesWatch {
	m.era++
	watch := uprobesWatch{
		Era:        m.era,
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
