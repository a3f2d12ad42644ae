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

	"github.com/attune-hpc/attune/controller/internal/abitest"
)

// App is an application with the memory file mapped.
type App struct {
	// Layout is the C compiler's answer.
	Layout map[string]uint64
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
	return &App{Layout: abitest.Layout(t), Data: data}
}

// U32 is the word of a header field.
func (a *App) U32(field string) *uint32 { return a.u32(a.Layout["attune_header."+field]) }

// U64 is the word of a header field.
func (a *App) U64(field string) *uint64 { return a.u64(a.Layout["attune_header."+field]) }

func (a *App) u32(at uint64) *uint32 { return (*uint32)(unsafe.Pointer(&a.Data[at])) }
func (a *App) u64(at uint64) *uint64 { return (*uint64)(unsafe.Pointer(&a.Data[at])) }

// Ready fills in the application's part of the header.
func (a *App) Ready(pid int) {
	*a.U32("pid") = uint32(pid)
	atomic.StoreUint32(a.U32("state"), 1)
}

// SlotWord is a 4-byte field of a slot.
func (a *App) SlotWord(slot int, field string) *uint32 { return a.u32(a.slot(slot, field)) }

// SlotLong is an 8-byte field of a slot.
func (a *App) SlotLong(slot int, field string) *uint64 { return a.u64(a.slot(slot, field)) }

func (a *App) slot(slot int, field string) uint64 {
	return *a.U64("slot_offset") + uint64(slot)*a.Layout["attune_slot"] + a.Layout["attune_slot."+field]
}

// Control is the control word of a local point. Safe in several goroutines.
func (a *App) Control(point int) uint32 {
	return atomic.LoadUint32(a.u32(a.control(point, "word")))
}

// Predicate returns the sample mask and bounds of a local point.
func (a *App) Predicate(point int) (mask uint32, least, most uint64) {
	return *a.u32(a.control(point, "sample_mask")),
		*a.u64(a.control(point, "min_value")), *a.u64(a.control(point, "max_value"))
}

func (a *App) control(point int, field string) uint64 {
	return *a.U64("control_offset") + uint64(point)*a.Layout["attune_point_control"] +
		a.Layout["attune_point_control."+field]
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
	count := int(*a.U32("slot_count"))
	for i := range count {
		slot := (from + i) % count
		a.raise(uint32(slot) + 1)
		free, used := uint32(a.Layout["ATTUNE_SLOT_FREE"]), uint32(a.Layout["ATTUNE_SLOT_USED"])
		if !atomic.CompareAndSwapUint32(a.SlotWord(slot, "state"), free, used) {
			continue
		}
		atomic.StoreUint32(a.SlotWord(slot, "tid"), uint32(tid))
		t := &Thread{app: a, slot: slot}
		if ring := *a.SlotWord(slot, "ring"); ring != 0 {
			t.use(ring - 1)
		}
		return t
	}
	return nil
}

// Common is what stands for all threads that found no slot. It only counts.
func (a *App) Common() *Thread {
	atomic.StoreUint32(a.U32("common_used"), 1)
	return &Thread{app: a, slot: int(*a.U32("slot_count"))}
}

// raise says that slots below n may be in use.
func (a *App) raise(n uint32) {
	mark := a.U32("slots_used")
	for now := atomic.LoadUint32(mark); now < n && !atomic.CompareAndSwapUint32(mark, now, n); now = atomic.LoadUint32(mark) {
	}
}

// Slot is the index of its slot.
func (t *Thread) Slot() int { return t.slot }

func (t *Thread) use(ring uint32) {
	size := uint64(*t.app.U32("ring_records")) * t.app.Layout["attune_record"]
	t.ring = *t.app.U64("ring_offset") + uint64(ring)*size
}

// Record writes an event; false if it was lost, which is counted.
func (t *Thread) Record(time uint64, point, flags uint16, value, extra uint64) bool {
	if t.ring == 0 && !t.firstRing() {
		return t.lose()
	}
	head, records := *t.app.SlotLong(t.slot, "head"), uint64(*t.app.U32("ring_records"))
	if head-atomic.LoadUint64(t.app.SlotLong(t.slot, "tail")) >= records {
		return t.lose()
	}
	b := t.app.Data[t.ring+head%records*t.app.Layout["attune_record"]:][:32]
	binary.LittleEndian.PutUint64(b[t.app.Layout["attune_record.time"]:], time)
	binary.LittleEndian.PutUint16(b[t.app.Layout["attune_record.point"]:], point)
	binary.LittleEndian.PutUint16(b[t.app.Layout["attune_record.flags"]:], flags)
	binary.LittleEndian.PutUint32(b[t.app.Layout["attune_record.thread"]:], 0)
	binary.LittleEndian.PutUint64(b[t.app.Layout["attune_record.value"]:], value)
	binary.LittleEndian.PutUint64(b[t.app.Layout["attune_record.extra"]:], extra)
	atomic.StoreUint64(t.app.SlotLong(t.slot, "head"), head+1)
	return true
}

// Followed writes an event with continuations that carry the words, three each.
// False if there is no room for all of it: it is lost, and counted as one.
func (t *Thread) Followed(point uint16, value uint64, kinds uint32, words ...uint64) bool {
	units := uint64(len(words)+2) / 3
	if t.ring == 0 && !t.firstRing() {
		return t.lose()
	}
	head, tail := *t.app.SlotLong(t.slot, "head"), atomic.LoadUint64(t.app.SlotLong(t.slot, "tail"))
	if head-tail+1+units > uint64(*t.app.U32("ring_records")) {
		return t.lose()
	}
	follow := uint16(units) << t.app.Layout["ATTUNE_RECORD_FOLLOW_SHIFT"]
	t.Record(0, point, follow, value, 0)
	words = append(words, 0, 0)
	for i := range units {
		first, flags := words[3*i], uint16(t.app.Layout["ATTUNE_RECORD_CONTINUATION"])
		t.Record(first, uint16(t.app.Layout["ATTUNE_CONTINUATION_POINT"]), flags, words[3*i+1], words[3*i+2])
		at := t.ring + (head+1+i)%uint64(*t.app.U32("ring_records"))*t.app.Layout["attune_record"]
		*t.app.u32(at + t.app.Layout["attune_continuation.kinds"]), kinds = kinds, 0
	}
	return true
}

func (t *Thread) firstRing() bool {
	next := atomic.AddUint32(t.app.U32("ring_next"), 1) - 1
	if next >= *t.app.U32("ring_count") {
		return false
	}
	atomic.StoreUint32(t.app.SlotWord(t.slot, "ring"), next+1)
	t.use(next)
	return true
}

func (t *Thread) lose() bool {
	atomic.AddUint64(t.app.SlotLong(t.slot, "lost"), 1)
	return false
}

// Count adds a value to the thread's aggregate of a local point.
func (t *Thread) Count(point int, value uint64) {
	at := t.app.slot(t.slot, "aggregates") + uint64(point)*t.app.Layout["attune_aggregate"]
	long := func(field string) *uint64 { return t.app.u64(at + t.app.Layout["attune_aggregate."+field]) }
	epoch := t.app.u32(at + t.app.Layout["attune_aggregate.epoch"])
	if now := atomic.LoadUint32(t.app.U32("epoch")); *epoch != now {
		atomic.StoreUint64(long("min"), value)
		atomic.StoreUint64(long("max"), value)
		atomic.StoreUint32(epoch, now)
	}
	atomic.StoreUint64(long("min"), min(*long("min"), value))
	atomic.StoreUint64(long("max"), max(*long("max"), value))
	bucket := bitLen(value, t.app.Layout["ATTUNE_HIST_BUCKETS"])
	atomic.AddUint32(t.app.u32(at+t.app.Layout["attune_aggregate.histogram"]+4*bucket), 1)
	atomic.AddUint64(long("sum"), value)
	atomic.AddUint64(long("count"), 1)
}

// bitLen is the histogram bucket of a value.
func bitLen(value, buckets uint64) uint64 { return min(uint64(bits.Len64(value)), buckets-1) }

// SetBucket sets a histogram bucket of the thread, as after many hits.
func (t *Thread) SetBucket(point, bucket int, n uint32) {
	at := t.app.slot(t.slot, "aggregates") + uint64(point)*t.app.Layout["attune_aggregate"]
	*t.app.u32(at + t.app.Layout["attune_aggregate.histogram"] + 4*uint64(bucket)) = n
}

// Close ends the thread in the orderly way.
func (t *Thread) Close() {
	atomic.StoreUint32(t.app.SlotWord(t.slot, "state"), uint32(t.app.Layout["ATTUNE_SLOT_CLOSED"]))
}
