// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"testing"
)

// FuzzDrain writes arbitrary bytes over what the application can write: the
// header, the slots' identity and producer lines, aggregates, the mailbox and tables.
// Nothing may panic, hang or hand out a record of a point that is not enabled.
func FuzzDrain(f *testing.F) {
	f.Add([]byte{}, []byte{}, []byte{1})
	f.Add(bytes.Repeat([]byte{0xff}, headerSize), bytes.Repeat([]byte{1}, slotAggregates), []byte{1, 2, 3})
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
			copy(app.Data[:headerSize], header)
			for i := range small().Slots {
				at := m.slotAt(i)
				copy(app.Data[at:at+slotAggregates], slot)
				copy(app.Data[at+slotAggregates:], rest)
				slot = append(slot[min(len(slot), 1):], byte(round)) // each slot another
			}
			copy(app.Data[m.at.mailbox:m.at.slots], rest)
			copy(app.Data[m.at.rings:], rest)
			copy(app.Data[m.at.programs:], rest)
			copy(app.Data[m.at.tables:], rest)
			copy(app.Data[m.tableAt(0)+tableKey:], slot)
			events, got := drainAll(t, m, d)
			if len(events) > small().Slots*small().RingRecords {
				t.Fatalf("%d records out of %d rings of %d", len(events), small().Rings, small().RingRecords)
			}
			for _, e := range events {
				if e.Point != 9 && (e.Point != 0 || e.Flags&RecordContinuation == 0) {
					t.Fatalf("record of a point that is not enabled: %+v", e)
				}
			}
			if uint64(len(events)) != got.Received+got.Continuations {
				t.Fatalf("%d units, %+v", len(events), got)
			}
			if got := m.Aggregates(nil, d.scale); len(got) < 2 || len(got) > 2+1+buckets(4) {
				t.Fatalf("%d aggregates of two points, one of which with at most %d keys", len(got), buckets(4))
			}
			m.Reclaim(func(tid int) bool { return tid%2 == 0 })
			m.App()
			m.Poll(ticket)
		}
		m.Cancel(ticket)
	})
}
