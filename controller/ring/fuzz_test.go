// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"testing"
)

// FuzzDrain writes arbitrary bytes over what the application can write: the
// header, the slots' identity and producer lines, aggregates and the mailbox.
// Nothing may panic, hang or hand out a record of a point that is not enabled.
func FuzzDrain(f *testing.F) {
	f.Add([]byte{}, []byte{}, []byte{1})
	f.Add(bytes.Repeat([]byte{0xff}, headerSize), bytes.Repeat([]byte{1}, slotAggregates), []byte{1, 2, 3})
	f.Add([]byte{}, []byte{1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0}, bytes.Repeat([]byte{3}, 40))
	f.Fuzz(func(t *testing.T, header, slot, rest []byte) {
		m, app := mustApp(t, small())
		mustSet(t, m, 0, PointControl{Point: 9, Event: true, Aggregate: true, Duration: true})
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
			events, _ := drainAll(t, m, d)
			if len(events) > small().Slots*small().RingRecords {
				t.Fatalf("%d records out of %d rings of %d", len(events), small().Rings, small().RingRecords)
			}
			for _, e := range events {
				if e.Point != 9 {
					t.Fatalf("record of a point that is not enabled: %+v", e)
				}
			}
			if got := m.Aggregates(nil, d.Scale()); len(got) != 1 {
				t.Fatalf("%d aggregates of one point", len(got))
			}
			m.Reclaim(func(tid int) bool { return tid%2 == 0 })
			m.App()
			m.Poll(ticket)
		}
		m.Cancel(ticket)
	})
}
