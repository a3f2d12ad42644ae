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

// waitingWatches are given to processes by the kernel, at their first hit.
type waitingWatches struct {
	expectations bpf.SharedArray[uprobesExpectation]
	count        *ebpf.Variable
	// of says what each one is for; the zero value: it is free.
	of []Expectation
}

func (w *waitingWatches) open(from *uprobeMaps) (err error) {
	if w.expectations, err = bpf.MapArray[uprobesExpectation](from.Expectations); err != nil {
		return fmt.Errorf("map expectations: %w", err)
	}
	w.count, w.of = from.Expected, make([]Expectation, len(w.expectations.Elements))
	return nil
}

// Expect has so many processes that are yet to come watched from their first
// hit on, without anybody having to be told of them in time: Watch takes over
// what was counted until then. Points that capture cannot be expected, and if
// there is no room less is expected; neither is an error, since Watch serves
// these all the same. What was expected is, until the point is detached.
func (u *Uprobes) Expect(e Expectation, ahead int) error {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	defined := t.points[e.Point]
	if defined == nil {
		return fmt.Errorf("expect processes: point %d is not attached", e.Point)
	}
	if !defined.config.program.Empty() {
		return nil
	}
	for i, of := range t.waiting.of {
		if of == e && t.unclaimed(i) {
			ahead--
		}
	}
	for i := 0; i < len(t.waiting.of) && ahead > 0; i++ {
		if t.reusable(i) && t.await(i, e, defined.config) {
			ahead--
		}
	}
	return t.waiting.tell()
}

// tell says up to which one the programs have to look.
func (w *waitingWatches) tell() error {
	var count uint32
	for i, of := range w.of {
		if of != (Expectation{}) {
			count = uint32(i) + 1
		}
	}
	return w.count.Set(count)
}

func (t *watchTable) unclaimed(i int) bool {
	return atomic.LoadUint32(&t.waiting.expectations.Elements[i].Claimed) == 0
}

// reusable says whether an expectation is free, or has been claimed by a process
// that has ended without anybody having asked for it.
func (t *watchTable) reusable(i int) bool {
	if t.waiting.of[i] == (Expectation{}) {
		return true
	}
	if t.unclaimed(i) {
		return false
	}
	watch := &t.watches.Elements[t.waiting.expectations.Elements[i].Watch]
	pid := atomic.LoadUint32(&watch.Process)
	if pid == 0 {
		return false // just being claimed
	}
	stat, err := procid.ReadStat(int(pid))
	if err == nil && !stat.Zombie() && t.startTicks(watch) == stat.StartTicks {
		return false
	}
	t.drop(i)
	return true
}

// startTicks is when the process of a claimed watch started, as /proc has it.
func (t *watchTable) startTicks(watch *uprobesWatch) uint64 {
	return uint64(int64(watch.StartFrom)+t.bootOffset) / uint64(bpf.ClockTick)
}

// await makes an expectation of a free watch; false if there is none.
func (t *watchTable) await(i int, e Expectation, config pointConfig) bool {
	if len(t.free) == 0 {
		return false
	}
	number := t.free[0]
	t.free = t.free[1:]
	watch := newWatch(config)
	watch.Point = uint32(e.Point)
	t.watches.Elements[number] = watch
	element := &t.waiting.expectations.Elements[i]
	element.Inode, element.Device, element.Uid = e.Inode, kernelDevice(e.Device), e.UID
	element.Watch = number
	t.waiting.of[i] = e
	atomic.StoreUint32(&element.Claimed, 0)
	atomic.StoreUint32(&element.Point, uint32(e.Point)) // from here on it counts
	return true
}

// kernelDevice is a device number as the kernel itself has it.
func kernelDevice(device uint64) uint32 {
	return unix.Major(device)<<bpf.MinorBits | unix.Minor(device)
}

// adopt makes the watch that a process has claimed the one of this key, and
// waits for the next process; false if it has claimed none.
func (t *watchTable) adopt(key uprobesWatchKey, w Watch, config pointConfig) (bool, error) {
	for i, of := range t.waiting.of {
		element := &t.waiting.expectations.Elements[i]
		if of.Point != w.Point || of == (Expectation{}) || atomic.LoadUint32(&element.Claimed) != key.Process {
			continue
		}
		number := element.Watch
		watch := &t.watches.Elements[number]
		if atomic.LoadUint32(&watch.Process) != key.Process || t.startTicks(watch) != w.StartTicks {
			continue // it belongs to an earlier process, or is just being claimed
		}
		if err := t.watched.Put(&key, &number); err != nil {
			return false, err
		}
		t.index[key] = &watchEntry{number: number, start: w.StartTicks, signed: config.program.Signed(), adopted: true}
		t.list(key, number)
		t.forget(i)
		t.await(i, of, config)
		return true, t.waiting.tell()
	}
	return false, nil
}

// Expected says whether a process that is watched was expected at the point, and
// is watched since its first hit.
func (u *Uprobes) Expected(pid int, point uint16) bool {
	t := &u.watches
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.index[uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}]
	return entry != nil && entry.adopted
}

// forget frees an expectation, and leaves its watch to whoever has it.
func (t *watchTable) forget(i int) {
	atomic.StoreUint32(&t.waiting.expectations.Elements[i].Point, 0)
	t.waiting.of[i] = Expectation{}
}

// drop frees an expectation with its watch.
func (t *watchTable) drop(i int) {
	t.forget(i)
	number := t.waiting.expectations.Elements[i].Watch
	watch := &t.watches.Elements[number]
	key := uprobesWatchKey{Process: atomic.SwapUint32(&watch.Process, 0), Point: watch.Point}
	t.show(watchBucket(key))
	t.free = append(t.free, number)
}

// unexpect drops all expectations of a point.
func (t *watchTable) unexpect(point uint16) {
	for i, of := range t.waiting.of {
		if of != (Expectation{}) && of.Point == point {
			t.drop(i)
		}
	}
	_ = t.waiting.tell() // it only fails after Close; who looks too far finds nothing
}
