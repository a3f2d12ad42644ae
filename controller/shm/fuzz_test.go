// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"testing"

	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// FuzzDrain writes arbitrary bytes over what the application can write: the
// header, the slots' identity and producer lines, aggregates, the mailbox and tables.
// Nothing may panic, hang or hand out a record of a point that is not enabled.
func FuzzDrain(f *testing.F) {
	f.Add([]byte{}, []byte{}, []byte{1})
	f.Add(bytes.Repeat([]byte{0xff}, abi.HeaderBytes), bytes.Repeat([]byte{1}, abi.SlotAggregatesAt), []byte{1, 2, 3})
	f.Add([]byte{}, []byte{1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0}, bytes.Repeat([]byte{3}, 40))
	f.Add([]byte{}, []byte{1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0}, append(append(make([]byte, 11), 2), bytes.Repeat([]byte{0xff, 0xff, 8, 0}, 30)...))
	f.Fuzz(func(t *testing.T, header, slot, rest []byte) {
		m, app := mustApp(t, small())
		mustSet(t, m, 0, PointControl{Point: 9, Event: true, Aggregate: true, Duration: true})
		mustSet(t, m, 1, PointControl{Point: 9, Aggregate: true, Program: mustProgram(t, 4)})
		ticket, err := m.Post(Command{Op: OpNop, At: AtAlloc})
		if err != nil {
			t.Fatal(err)
		}
		d := NewDrainer(steadyClock())
		for round := range 3 {
			copy(app.Data[:abi.HeaderBytes], header)
			for i := range small().Slots {
				at := m.slotAt(i)
				copy(app.Data[at:at+abi.SlotAggregatesAt], slot)
				copy(app.Data[at+abi.SlotAggregatesAt:], rest)
				slot = append(slot[min(len(slot), 1):], byte(round)) // each slot another
			}
			copy(app.Data[m.at.mailbox:m.at.slots], rest)
			copy(app.Data[m.at.rings:], rest)
			copy(app.Data[m.at.programs:], rest)
			copy(app.Data[m.at.tables:], rest)
			copy(app.Data[m.tableAt(0)+abi.TablePlaceAt:], slot)
			events, got := drainAll(t, m, d)
			if len(events) > small().Rings*small().RingRecords {
				t.Fatalf("%d records out of %d rings of %d", len(events), small().Rings, small().RingRecords)
			}
			for _, e := range events {
				if e.Point != 9 && (e.Point != 0 || e.Flags&attunev1.RecordContinuation == 0) {
					t.Fatalf("record of a point that is not enabled: %+v", e)
				}
			}
			if uint64(len(events)) != got.Received+got.Continuations {
				t.Fatalf("%d units, %+v", len(events), got)
			}
			if got := m.Aggregates(nil, d.scale); len(got) < 2 || len(got) > 2+1+places {
				t.Fatalf("%d aggregates of two points, one of which with at most %d keys", len(got), places)
			}
			m.Reclaim(oddOnes)
			m.App()
			m.Poll(ticket)
		}
		m.Cancel(ticket)
	})
}

// places of the table of hostile.begin, with four keys.
const places = 8

// image is what the application can write and the controller reads of a memory
// with the points of hostile.begin, one piece after the other.
func image(m *Memory, data []byte) (pieces [][]byte) {
	add := func(at, size int) { pieces = append(pieces, data[at:at+size]) }
	add(0, abi.HeaderBytes)
	add(m.at.mailbox, MailboxSize*abi.CommandBytes)
	for i := range small().Slots {
		add(m.slotAt(i), abi.SlotAggregatesAt)
	}
	for _, point := range []int{0, 1, HookCount} {
		add(m.controlAt(point), abi.PointControlBytes)
		for i := range small().Slots {
			add(m.slotAt(i)+abi.SlotAggregatesAt+point*abi.AggregateBytes, abi.AggregateBytes)
		}
	}
	add(m.at.rings, small().Rings*small().RingRecords*attunev1.RecordSize)
	add(m.programAt(0)+abi.ProgramSlotUnreadableAt, 8)
	add(m.tableAt(0), abi.TablePlaceAt+places*abi.AggregateBytes)
	return pieces
}

// realImage is that of an application that does as it should.
func realImage(f *testing.F) []byte {
	f.Helper()
	m, app := mustApp(f, small())
	(&hostile{m: m}).begin(f)
	app.Ready(77)
	for i := range small().Rings {
		thread := app.Claim(100+i, i)
		for n := range uint64(3) {
			thread.Record(4000+n, 0, attunev1.RecordDuration, n, n)
			thread.Count(HookCount, n)
		}
	}
	return bytes.Join(image(m, app.Data), nil)
}

// FuzzImage reads a memory that has any image, in which commands, points and
// threads come and go between two readings.
func FuzzImage(f *testing.F) {
	f.Add(realImage(f), uint16(0))
	f.Add(realImage(f), uint16(1024+128))
	f.Add(bytes.Repeat([]byte{0xff}, 1<<16), uint16(1))
	f.Fuzz(func(t *testing.T, content []byte, shift uint16) {
		m, app := mustApp(t, small())
		h := &hostile{m: m, set: []uint16{9, 10, 11}}
		h.begin(t)
		ticket, err := m.Post(Command{Op: OpNop, At: AtAlloc})
		if err != nil {
			t.Fatal(err)
		}
		d := NewDrainer(steadyClock())
		for range 3 {
			rest := content
			for _, piece := range image(m, app.Data) {
				rest = rest[copy(piece, rest):]
			}
			h.drain(t, d)
			h.aggregates(t)
			h.rest(t)
			h.points(t)
			m.Poll(ticket)
			content = content[min(int(shift), len(content)):] // another one the next time
		}
		m.Cancel(ticket)
	})
}
