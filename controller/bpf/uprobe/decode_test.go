// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"encoding/binary"
	"testing"
)

// Flags of a record: those of dmlib_abi.h; the kind of a string, and the bit of
// its length that says that it was cut: those of program.h.
const (
	recordDuration = 1 << 0
	recordSampled  = 1 << 1
	kindString     = 5
	stringCut      = 1 << 32
)

// hit is a decoded record with the words of its continuations.
type hit struct {
	Time, Value, Extra uint64
	Point, Flags       uint16
	Thread, Process    uint32
	Kinds              uint32
	Words              []uint64
}

// decodeBatch is an independent reading of what RecordBatch of the protocol
// says of records.
func decodeBatch(t testing.TB, batch Batch) (hits []hit) {
	t.Helper()
	order := binary.LittleEndian
	for records := batch.Records; len(records) > 0; {
		h := hit{
			Time: order.Uint64(records), Point: order.Uint16(records[8:]), Flags: order.Uint16(records[10:]),
			Thread: order.Uint32(records[12:]), Value: order.Uint64(records[16:]), Extra: order.Uint64(records[24:]),
			Process: batch.Process,
		}
		records = records[32:]
		for i := range int(h.Flags >> 8) {
			unit := records[32*i : 32*i+32]
			if point, flags := order.Uint16(unit[8:]), order.Uint16(unit[10:]); point != 0 || flags != 8 {
				t.Fatalf("continuation with point %d, flags %#x", point, flags)
			}
			if i == 0 {
				h.Kinds = order.Uint32(unit[12:])
			}
			h.Words = append(h.Words, order.Uint64(unit), order.Uint64(unit[16:]), order.Uint64(unit[24:]))
		}
		records = records[32*int(h.Flags>>8):]
		hits = append(hits, h)
	}
	if len(hits) != int(batch.Hits) {
		t.Errorf("%d records in a batch of %d", len(hits), batch.Hits)
	}
	return hits
}
