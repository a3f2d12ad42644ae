// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/procid"
)

// Expectation is a process that is yet to come: of a user, of a file.
type Expectation struct {
	// Device and Inode of its program's file, as /proc/PID/maps has them.
	Device, Inode uint64
	// UID is its user.
	UID uint32
	// Point that it will be watched at.
	Point uint16
}

// expectations are watches that the kernel gives to processes, at their first hit.
// Guarded by watchTable.mu.
type expectations struct {
	memory *watchMemory
	shared bpf.SharedArray[uprobesExpectation]
	count  *ebpf.Variable
	// of says what each one is for; the zero value: it is free.
	of []Expectation
}

func (w *expectations) open(memory *watchMemory, from *uprobeMaps) (err error) {
	if w.shared, err = bpf.MapArray[uprobesExpectation](from.Expectations); err != nil {
		return fmt.Errorf("map expectations: %w", err)
	}
	w.memory, w.count, w.of = memory, from.Expected, make([]Expectation, len(w.shared.Elements))
	return nil
}

// add expects so many processes, those that are expected already among them.
func (w *expectations) add(e Expectation, ahead int, config pointConfig) error {
	for i, of := range w.of {
		if of == e && w.unclaimed(i) {
			ahead--
		}
	}
	for i := 0; i < len(w.of) && ahead > 0; i++ {
		if w.reusable(i) && w.await(i, e, config) {
			ahead--
		}
	}
	return w.tell()
}

// tell says up to which one the programs have to look.
func (w *expectations) tell() error {
	var count uint32
	for i, of := range w.of {
		if of != (Expectation{}) {
			count = uint32(i) + 1
		}
	}
	return w.count.Set(count)
}

func (w *expectations) unclaimed(i int) bool {
	return atomic.LoadUint32(&w.shared.Elements[i].Claimed) == 0
}

// reusable says whether an expectation is free, or has been claimed by a process
// that has ended without anybody having asked for it.
func (w *expectations) reusable(i int) bool {
	if w.of[i] == (Expectation{}) {
		return true
	}
	if w.unclaimed(i) {
		return false
	}
	watch := &w.memory.watches.Elements[w.shared.Elements[i].Watch]
	pid := atomic.LoadUint32(&watch.Process)
	if pid == 0 {
		return false // just being claimed
	}
	stat, err := procid.ReadStat(int(pid))
	if err == nil && !stat.Zombie() && w.memory.startTicks(watch) == stat.StartTicks {
		return false
	}
	w.dropOne(i)
	return true
}

// await makes an expectation of a free watch; false if there is none.
func (w *expectations) await(i int, e Expectation, config pointConfig) bool {
	if len(w.memory.free) == 0 {
		return false
	}
	number := w.memory.free[0]
	w.memory.free = w.memory.free[1:]
	watch := w.memory.newWatch(config)
	watch.Point = uint32(e.Point)
	w.memory.watches.Elements[number] = watch
	element := &w.shared.Elements[i]
	element.Inode, element.Device, element.Uid = e.Inode, kernelDevice(e.Device), e.UID
	element.Watch = number
	w.of[i] = e
	atomic.StoreUint32(&element.Claimed, 0)
	atomic.StoreUint32(&element.Point, uint32(e.Point)) // from here on it counts
	return true
}

// kernelDevice is a device number as the kernel itself has it.
func kernelDevice(device uint64) uint32 {
	return unix.Major(device)<<bpf.MinorBits | unix.Minor(device)
}

// adopt makes the watch that a process has claimed the one of this key, and
// waits for the next process; nil if it has claimed none.
func (w *expectations) adopt(key uprobesWatchKey, start uint64, config pointConfig) (*watchEntry, error) {
	for i, of := range w.of {
		element := &w.shared.Elements[i]
		if uint32(of.Point) != key.Point || of == (Expectation{}) || atomic.LoadUint32(&element.Claimed) != key.Process {
			continue
		}
		number := element.Watch
		watch := &w.memory.watches.Elements[number]
		if atomic.LoadUint32(&watch.Process) != key.Process || w.memory.startTicks(watch) != start {
			continue // it belongs to an earlier process, or is just being claimed
		}
		if err := w.memory.list(key, number); err != nil {
			return nil, err
		}
		w.forget(i)
		w.await(i, of, config)
		return &watchEntry{number: number, start: start, signed: config.program.Signed(), adopted: true}, w.tell()
	}
	return nil, nil
}

// forget frees an expectation, and leaves its watch to whoever has it.
func (w *expectations) forget(i int) {
	atomic.StoreUint32(&w.shared.Elements[i].Point, 0)
	w.of[i] = Expectation{}
}

// dropOne frees an expectation with its watch.
func (w *expectations) dropOne(i int) {
	w.forget(i)
	number := w.shared.Elements[i].Watch
	watch := &w.memory.watches.Elements[number]
	key := uprobesWatchKey{Process: atomic.SwapUint32(&watch.Process, 0), Point: watch.Point}
	w.memory.show(watchBucket(key))
	w.memory.free = append(w.memory.free, number)
}

// drop drops all expectations of a point.
func (w *expectations) drop(point uint16) {
	for i, of := range w.of {
		if of != (Expectation{}) && of.Point == point {
			w.dropOne(i)
		}
	}
	_ = w.tell() // it only fails after Close; who looks too far finds nothing
}
