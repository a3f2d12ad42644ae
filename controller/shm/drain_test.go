// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// event is a decoded record of a batch.
type event struct {
	Time         uint64
	Point, Flags uint16
	Thread       uint32
	Value, Extra uint64
}

func decode(t testing.TB, batch []byte) []event {
	t.Helper()
	if len(batch) == 0 || len(batch)%attunev1.RecordSize != 0 || len(batch) > BatchRecords*attunev1.RecordSize {
		t.Fatalf("batch of %d bytes", len(batch))
	}
	var events []event
	for ; len(batch) > 0; batch = batch[attunev1.RecordSize:] {
		events = append(events, event{
			Time:   binary.LittleEndian.Uint64(batch[abi.RecordTimeAt:]),
			Point:  binary.LittleEndian.Uint16(batch[abi.ContinuationPointAt:]),
			Flags:  binary.LittleEndian.Uint16(batch[abi.ContinuationFlagsAt:]),
			Thread: binary.LittleEndian.Uint32(batch[abi.RecordThreadAt:]),
			Value:  binary.LittleEndian.Uint64(batch[abi.RecordValueAt:]),
			Extra:  binary.LittleEndian.Uint64(batch[abi.RecordExtraAt:]),
		})
	}
	return events
}

func drainAll(t testing.TB, m *Memory, d *Drainer) ([]event, Drained) {
	t.Helper()
	var events []event
	got := m.Drain(d, func(batch []byte) { events = append(events, decode(t, batch)...) })
	if got.Received+got.Continuations != uint64(len(events)) {
		t.Fatalf("received %d with %d continuations, handed out %d", got.Received, got.Continuations, len(events))
	}
	return events, got
}

func TestDrainRewrites(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 3, PointControl{Point: 300, Event: true})
	mustSet(t, m, HookCount-1, PointControl{Point: math.MaxUint16, Event: true, Duration: true})
	d := NewDrainer(steadyClock())
	a, b := app.Claim(101, 5), app.Claim(102, 5)
	a.Record(400, 3, attunev1.RecordSampled, 7, 8)
	b.Record(4000, HookCount-1, attunev1.RecordDuration, 9, 4000)
	a.Record(8000, 3, 0, 1, 4000)    // after the anchor; the others are before
	a.Record(0, 4, 0, 0, 0)          // not enabled
	a.Record(0, PointCount, 0, 0, 0) // impossible
	events, got := drainAll(t, m, d)
	want := []event{
		{Time: 1100, Point: 300, Flags: attunev1.RecordSampled, Thread: 101, Value: 7, Extra: 8},
		{Time: 3000, Point: 300, Thread: 101, Value: 1, Extra: 4000},
		{Time: 2000, Point: math.MaxUint16, Flags: attunev1.RecordDuration, Thread: 102, Value: 9, Extra: 1000},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Drained{Received: 3, Unmapped: 1, Corrupt: 1}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDrainAfterClearPoint(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	thread := app.Claim(1, 0)
	thread.Record(0, 0, 0, 0, 0)
	m.ClearPoint(0)
	if events, got := drainAll(t, m, NewDrainer(steadyClock())); len(events) != 0 || got.Unmapped != 1 {
		t.Errorf("events %v, %+v", events, got)
	}
}

// A record that a point has left behind is not that of the next one which has its
// place, in whichever Drain it is read: it is dropped and counted.
func TestDrainAfterAnotherPoint(t *testing.T) {
	m, app := mustApp(t, small())
	d, thread := NewDrainer(steadyClock()), app.Claim(1, 0)
	for round := range uint16(3) {
		mustSet(t, m, 0, PointControl{Point: 1 + 2*round, Event: true})
		mustSet(t, m, 1, PointControl{Point: 100, Event: true})
		thread.Record(0, 0, 0, 1, 0)
		thread.Record(0, 1, 0, 2, 0)
		if round != 1 { // cleared before, or not
			m.ClearPoint(0)
		}
		mustSet(t, m, 0, PointControl{Point: 2 + 2*round, Event: true})
		thread.Record(0, 0, 0, 3, 0)
		thread.Record(0, 1, 0, 4, 0)
		var got []string
		events, counts := drainAll(t, m, d)
		for _, e := range events {
			got = append(got, fmt.Sprint(e.Point, " ", e.Value))
		}
		want := []string{"100 2", fmt.Sprint(2+2*round, " 3"), "100 4"}
		if diff := cmp.Diff(want, got); diff != "" || counts.Unmapped != 1 {
			t.Errorf("round %d: %d dropped, %s", round, counts.Unmapped, diff)
		}
	}
	if events, counts := drainAll(t, m, d); len(events) != 0 || counts.Unmapped != 0 {
		t.Errorf("afterwards: %v, %+v", events, counts)
	}
}

// TestDrainWrapsAround runs a ring through many rounds of varying fill.
func TestDrainWrapsAround(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	d, thread := NewDrainer(steadyClock()), app.Claim(1, 0)
	var sent, seen uint64
	for round := range 100 {
		for range round % (small().RingRecords + 1) {
			thread.Record(0, 0, 0, sent, 0)
			sent++
		}
		events, _ := drainAll(t, m, d)
		for _, e := range events {
			if e.Value != seen {
				t.Fatalf("round %d: got value %d, want %d", round, e.Value, seen)
			}
			seen++
		}
	}
	if seen != sent {
		t.Errorf("saw %d of %d", seen, sent)
	}
}

func TestDrainSplitsIntoBatches(t *testing.T) {
	const records = 4 * BatchRecords
	m, app := mustApp(t, Geometry{Slots: 2, Rings: 2, RingRecords: records})
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	first, second := app.Claim(1, 0), app.Claim(2, 0)
	for i := range records {
		first.Record(0, 0, 0, uint64(i), 0)
	}
	second.Record(0, 0, 0, records, 0)
	var sizes []int
	next := uint64(0)
	m.Drain(NewDrainer(steadyClock()), func(batch []byte) {
		events := decode(t, batch)
		sizes = append(sizes, len(events))
		for _, e := range events {
			if e.Value != next {
				t.Fatalf("got value %d, want %d", e.Value, next)
			}
			next++
		}
	})
	if diff := cmp.Diff([]int{BatchRecords, BatchRecords, BatchRecords, BatchRecords, 1}, sizes); diff != "" {
		t.Error(diff)
	}
}

func TestDrainCountsLosses(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: 4, Rings: 1, RingRecords: 64})
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	d, full, ringless := NewDrainer(steadyClock()), app.Claim(1, 0), app.Claim(2, 0)
	for range 64 + 3 {
		full.Record(0, 0, 0, 0, 0)
	}
	ringless.Record(0, 0, 0, 0, 0)
	if _, got := drainAll(t, m, d); got.Received != 64 || got.Lost != 4 {
		t.Errorf("got %+v, want 64 received and 4 lost", got)
	}
	full.Record(0, 0, 0, 0, 0)
	ringless.Record(0, 0, 0, 0, 0)
	if _, got := drainAll(t, m, d); got.Received != 1 || got.Lost != 1 {
		t.Errorf("got %+v, want 1 received and 1 lost", got)
	}
}

func TestSlotChangesHands(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: 1, Rings: 1, RingRecords: 64})
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	d := NewDrainer(steadyClock())
	for tid := 1; tid <= 200; tid++ { // more records in all than the ring holds
		thread := app.Claim(tid, 0)
		if thread == nil {
			t.Fatalf("no slot for thread %d", tid)
		}
		thread.Record(0, 0, 0, uint64(tid), 0)
		thread.Close()
		events, got := drainAll(t, m, d)
		if len(events) != 1 || events[0].Thread != uint32(tid) || events[0].Value != uint64(tid) {
			t.Fatalf("thread %d: got %+v", tid, events)
		}
		if got.FewSlotsFree {
			t.Error("the free slot was not counted")
		}
	}
}

// TestSlotWithoutRingIsFreed: threads that only aggregate never ask for a ring.
func TestSlotWithoutRingIsFreed(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: 1, Rings: 1, RingRecords: 64})
	d := NewDrainer(steadyClock())
	app.Claim(1, 0).Close()
	drainAll(t, m, d)
	if app.Claim(2, 0) == nil {
		t.Error("the slot was not freed")
	}
}

func TestReclaim(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: 4, Rings: 4, RingRecords: 64})
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	d := NewDrainer(steadyClock())
	dead, living, closed := app.Claim(1, 0), app.Claim(2, 0), app.Claim(3, 0)
	for _, thread := range []*dmtest.Thread{dead, living, closed} {
		thread.Record(0, 0, 0, 5, 0)
	}
	claiming := app.Claim(0, 0) // has the slot, but has not written its id yet
	if events, got := drainAll(t, m, d); len(events) != 3 || !got.FewSlotsFree {
		t.Errorf("events %v, %+v: want 3 and few slots free", events, got)
	}
	dead.Record(0, 0, 0, 6, 0) // its last words
	closed.Close()
	ended := func(tids []int) []int {
		if !slices.Equal(tids, []int{1, 2}) {
			t.Errorf("asked after threads %v, want those that have slots", tids)
		}
		return []int{1, 3, 4}
	}
	if n := m.Reclaim(ended); n != 1 {
		t.Errorf("reclaimed %d, want 1", n)
	}
	events, got := drainAll(t, m, d)
	if len(events) != 1 || events[0].Thread != 1 || events[0].Value != 6 || got.FewSlotsFree {
		t.Errorf("events %v, %+v: want the dead thread's last record", events, got)
	}
	free, used := uint32(abi.SlotFree), uint32(abi.SlotUsed)
	for thread, want := range map[*dmtest.Thread]uint32{dead: free, closed: free, living: used, claiming: used} {
		if state := *app.SlotWord(thread.Slot(), abi.SlotStateAt); state != want {
			t.Errorf("slot %d: state %d, want %d", thread.Slot(), state, want)
		}
	}
}

// TestReclaimSparesNewborn: a thread that is born and takes a slot while the threads
// are looked at keeps the slot, though the look has missed the thread; a thread that
// closes its slot meanwhile has closed it.
func TestReclaimSparesNewborn(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: 4, Rings: 4, RingRecords: 64})
	leaving := app.Claim(1, 0)
	app.Claim(2, 0)
	var born *dmtest.Thread
	listedBefore := map[int]bool{2: true}
	n := m.Reclaim(func(tids []int) []int {
		born = app.Claim(3, 0)
		leaving.Close()
		return slices.DeleteFunc([]int{1, 2, 3}, func(tid int) bool { return listedBefore[tid] })
	})
	if n != 0 {
		t.Errorf("reclaimed %d slots, want none", n)
	}
	if state := *app.SlotWord(born.Slot(), abi.SlotStateAt); state != abi.SlotUsed {
		t.Errorf("the newborn thread's slot is in state %d, want %d", state, abi.SlotUsed)
	}
}

// oddOnes takes every other thread for ended.
func oddOnes(tids []int) []int {
	return slices.DeleteFunc(tids, func(tid int) bool { return tid%2 == 0 })
}

// A ring is one slot's: records that all slots hand out would be as many as the
// slots, not the rings, allow.
func TestRingOfTwoSlots(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	d, first, second := NewDrainer(steadyClock()), app.Claim(1, 0), app.Claim(2, 1)
	first.Record(0, 0, 0, 6, 0)
	*app.SlotWord(second.Slot(), abi.SlotRingAt) = *app.SlotWord(first.Slot(), abi.SlotRingAt)
	*app.SlotLong(second.Slot(), abi.SlotHeadAt) = 1
	if events, got := drainAll(t, m, d); len(events) != 1 || events[0].Thread != 1 || got.CorruptSlots != 1 {
		t.Errorf("events %v, %+v: want the first slot's and the second one found corrupt", events, got)
	}
}

// Who counts records by their flags must not miss one that pretends.
func TestRecordThatPretendsToContinue(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	thread := app.Claim(1, 0)
	thread.Record(0, 0, attunev1.RecordContinuation, 6, 0)
	if events, got := drainAll(t, m, NewDrainer(steadyClock())); len(events) != 0 || got != (Drained{Corrupt: 1}) {
		t.Errorf("events %v, %+v: want it counted as corrupt", events, got)
	}
}

func TestCorruptSlotIsLeftAlone(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(app *dmtest.App, slot int)
	}{
		{"head too far", func(a *dmtest.App, s int) { *a.SlotLong(s, abi.SlotHeadAt) += 65 }},
		{"head went back", func(a *dmtest.App, s int) { *a.SlotLong(s, abi.SlotHeadAt) = 0 }},
		{"head huge", func(a *dmtest.App, s int) { *a.SlotLong(s, abi.SlotHeadAt) = math.MaxUint64 }},
		{"ring out of range", func(a *dmtest.App, s int) { *a.SlotWord(s, abi.SlotRingAt) = 5 }},
		{"ring huge", func(a *dmtest.App, s int) { *a.SlotWord(s, abi.SlotRingAt) = math.MaxUint32 }},
		{"ring of another slot", func(a *dmtest.App, s int) { *a.SlotWord(s, abi.SlotRingAt) = 2 }},
		{"ring taken away", func(a *dmtest.App, s int) { *a.SlotWord(s, abi.SlotRingAt) = 0 }},
		{"state unknown", func(a *dmtest.App, s int) { *a.SlotWord(s, abi.SlotStateAt) = 3 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, app := mustApp(t, small())
			mustSet(t, m, 0, PointControl{Point: 1, Event: true})
			d, bad, good := NewDrainer(steadyClock()), app.Claim(1, 0), app.Claim(2, 0)
			bad.Record(0, 0, 0, 0, 0)
			drainAll(t, m, d)
			tt.spoil(app, bad.Slot())
			good.Record(0, 0, 0, 0, 0)
			if events, got := drainAll(t, m, d); len(events) != 1 || events[0].Thread != 2 || got.CorruptSlots != 1 {
				t.Errorf("events %v, %+v: want one of thread 2 and one corrupt slot", events, got)
			}
			if _, got := drainAll(t, m, d); got != (Drained{}) {
				t.Errorf("the corrupt slot is still in use: %+v", got)
			}
		})
	}
}
