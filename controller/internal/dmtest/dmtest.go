// SPDX-License-Identifier: Apache-2.0

// Package dmtest imitates, for tests, what DMLib does with the memory file of
// its process. It takes the layout from the C compiler and the geometry from
// the file's header, so it shares no number with the code under test. A value
// of each type belongs to one goroutine unless a method says otherwise.
package dmtest

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// App is an application with the memory file mapped.
type App struct {
	// Data is the whole mapping.
	Data []byte
}

// Map maps the memory file behind fd, which the caller keeps, until the test
// ends.
func Map(t testing.TB, fd uintptr) *App {
	t.Helper()
	var info unix.Stat_t
	if err := unix.Fstat(int(fd), &info); err != nil {
		t.Fatal(err)
	}
	data, err := unix.Mmap(int(fd), 0, int(info.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(data); err != nil {
			t.Error(err)
		}
	})
	return &App{Data: data}
}

// U32 is the word of a header field.
func (a *App) U32(at uint64) *uint32 { return a.u32(at) }

// U64 is the word of a header field.
func (a *App) U64(at uint64) *uint64 { return a.u64(at) }

func (a *App) u32(at uint64) *uint32 { return (*uint32)(unsafe.Pointer(&a.Data[at])) }
func (a *App) u64(at uint64) *uint64 { return (*uint64)(unsafe.Pointer(&a.Data[at])) }

// Ready fills in the application's part of the header.
func (a *App) Ready(pid int) {
	*a.U32(abi.HeaderPIDAt) = uint32(pid)
	atomic.StoreUint32(a.U32(abi.HeaderStateAt), 1)
}

// SlotWord is a 4-byte field of a slot.
func (a *App) SlotWord(slot int, at uint64) *uint32 { return a.u32(a.slot(slot, at)) }

// SlotLong is an 8-byte field of a slot.
func (a *App) SlotLong(slot int, at uint64) *uint64 { return a.u64(a.slot(slot, at)) }

func (a *App) slot(slot int, at uint64) uint64 {
	return *a.U64(abi.HeaderSlotOffsetAt) + uint64(slot)*abi.SlotBytes + at
}

// Control is the control word of a local point. Safe in several goroutines.
func (a *App) Control(point int) uint32 {
	return atomic.LoadUint32(a.u32(a.control(point, abi.PointControlWordAt)))
}

// Predicate returns the sample mask and bounds of a local point.
func (a *App) Predicate(point int) (mask uint32, least, most uint64) {
	return *a.u32(a.control(point, abi.PointControlSampleMaskAt)),
		*a.u64(a.control(point, abi.PointControlMinValueAt)), *a.u64(a.control(point, abi.PointControlMaxValueAt))
}

// Era of the durations of a local point.
func (a *App) Era(point int) uint32 { return *a.u32(a.control(point, abi.PointControlEraAt)) }

func (a *App) control(point int, at uint64) uint64 {
	return *a.U64(abi.HeaderControlOffsetAt) + uint64(point)*abi.PointControlBytes + at
}

// Thread is a thread of the application with a slot.
type Thread struct {
	app  *App
	slot int
	ring uint64 // offset, 0: none
}

// Claim gives a thread the first free slot at or after from, going round like
// DMLib; nil if all are taken.
func (a *App) Claim(tid, from int) *Thread {
	count := int(*a.U32(abi.HeaderSlotCountAt))
	for i := range count {
		slot := (from + i) % count
		a.raise(uint32(slot) + 1)
		free, used := uint32(abi.SlotFree), uint32(abi.SlotUsed)
		if !atomic.CompareAndSwapUint32(a.SlotWord(slot, abi.SlotStateAt), free, used) {
			continue
		}
		atomic.StoreUint32(a.SlotWord(slot, abi.SlotTIDAt), uint32(tid))
		t := &Thread{app: a, slot: slot}
		if ring := *a.SlotWord(slot, abi.SlotRingAt); ring != 0 {
			t.use(ring - 1)
		}
		return t
	}
	return nil
}

// Common is what stands for all threads that found no slot. It only counts.
func (a *App) Common() *Thread {
	atomic.StoreUint32(a.U32(abi.HeaderCommonUsedAt), 1)
	return &Thread{app: a, slot: int(*a.U32(abi.HeaderSlotCountAt))}
}

// raise says that slots below n may be in use.
func (a *App) raise(n uint32) {
	mark := a.U32(abi.HeaderSlotsUsedAt)
	for now := atomic.LoadUint32(mark); now < n && !atomic.CompareAndSwapUint32(mark, now, n); now = atomic.LoadUint32(mark) {
	}
}

// Slot is the index of its slot.
func (t *Thread) Slot() int { return t.slot }

func (t *Thread) use(ring uint32) {
	size := uint64(*t.app.U32(abi.HeaderRingRecordsAt)) * abi.RecordBytes
	t.ring = *t.app.U64(abi.HeaderRingOffsetAt) + uint64(ring)*size
}

// Record writes an event; false if it was lost, which is counted.
func (t *Thread) Record(time uint64, point, flags uint16, value, extra uint64) bool {
	if t.ring == 0 && !t.firstRing() {
		return t.lose()
	}
	head, records := *t.app.SlotLong(t.slot, abi.SlotHeadAt), uint64(*t.app.U32(abi.HeaderRingRecordsAt))
	if head-atomic.LoadUint64(t.app.SlotLong(t.slot, abi.SlotTailAt)) >= records {
		return t.lose()
	}
	b := t.app.Data[t.ring+head%records*abi.RecordBytes:][:32]
	binary.LittleEndian.PutUint64(b[abi.RecordTimeAt:], time)
	binary.LittleEndian.PutUint16(b[abi.RecordPointAt:], point)
	binary.LittleEndian.PutUint16(b[abi.RecordFlagsAt:], flags)
	binary.LittleEndian.PutUint32(b[abi.RecordThreadAt:], 0)
	binary.LittleEndian.PutUint64(b[abi.RecordValueAt:], value)
	binary.LittleEndian.PutUint64(b[abi.RecordExtraAt:], extra)
	atomic.StoreUint64(t.app.SlotLong(t.slot, abi.SlotHeadAt), head+1)
	return true
}

// Followed writes an event with continuations that carry the words, three each.
// False if there is no room for all of it: it is lost, and counted as one.
func (t *Thread) Followed(point uint16, value uint64, kinds uint32, words ...uint64) bool {
	units := uint64(len(words)+2) / 3
	if t.ring == 0 && !t.firstRing() {
		return t.lose()
	}
	head, tail := *t.app.SlotLong(t.slot, abi.SlotHeadAt), atomic.LoadUint64(t.app.SlotLong(t.slot, abi.SlotTailAt))
	if head-tail+1+units > uint64(*t.app.U32(abi.HeaderRingRecordsAt)) {
		return t.lose()
	}
	follow := uint16(units) << abi.RecordFollowShift
	t.Record(0, point, follow, value, 0)
	words = append(words, 0, 0)
	for i := range units {
		first, flags := words[3*i], uint16(abi.RecordContinuation)
		t.Record(first, uint16(abi.ContinuationPoint), flags, words[3*i+1], words[3*i+2])
		at := t.ring + (head+1+i)%uint64(*t.app.U32(abi.HeaderRingRecordsAt))*abi.RecordBytes
		*t.app.u32(at + abi.ContinuationKindsAt), kinds = kinds, 0
	}
	return true
}

func (t *Thread) firstRing() bool {
	next := atomic.AddUint32(t.app.U32(abi.HeaderRingNextAt), 1) - 1
	if next >= *t.app.U32(abi.HeaderRingCountAt) {
		return false
	}
	atomic.StoreUint32(t.app.SlotWord(t.slot, abi.SlotRingAt), next+1)
	t.use(next)
	return true
}

func (t *Thread) lose() bool {
	atomic.AddUint64(t.app.SlotLong(t.slot, abi.SlotLostAt), 1)
	return false
}

// Count adds a value to the thread's aggregate of a local point.
func (t *Thread) Count(point int, value uint64) {
	at := t.app.slot(t.slot, abi.SlotAggregatesAt) + uint64(point)*abi.AggregateBytes
	t.app.count(at, value)
}

// count adds a value to the aggregate at an offset, as its only thread.
func (a *App) count(at, value uint64) {
	parity := 8 * uint64(atomic.LoadUint32(a.U32(abi.HeaderEpochAt))&1)
	least, greatest := a.u64(at+abi.AggregateLeastAt+parity), a.u64(at+abi.AggregateGreatestAt+parity)
	atomic.StoreUint64(least, max(atomic.LoadUint64(least), ^value))
	atomic.StoreUint64(greatest, max(atomic.LoadUint64(greatest), value))
	atomic.AddUint32(a.u32(at+abi.AggregateHistogramAt+4*bitLen(value, abi.HistBuckets)), 1)
	atomic.AddUint64(a.u64(at+abi.AggregateSumAt), value)
	atomic.AddUint64(a.u64(at+abi.AggregateCountAt), 1)
}

// bitLen is the histogram bucket of a value.
func bitLen(value, buckets uint64) uint64 { return min(uint64(bits.Len64(value)), buckets-1) }

// SetBucket sets a histogram bucket of the thread, as after many hits.
func (t *Thread) SetBucket(point, bucket int, n uint32) {
	at := t.app.slot(t.slot, abi.SlotAggregatesAt) + uint64(point)*abi.AggregateBytes
	*t.app.u32(at + abi.AggregateHistogramAt + 4*uint64(bucket)) = n
}

// Close ends the thread in the orderly way.
func (t *Thread) Close() {
	atomic.StoreUint32(t.app.SlotWord(t.slot, abi.SlotStateAt), uint32(abi.SlotClosed))
}
