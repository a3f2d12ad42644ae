// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// RecordSize is the size of one packed record in bytes (struct attune_record of
// dmlib_abi.h).
const RecordSize = 32

// Flags of a record.
const (
	// RecordDuration marks a record whose Extra is a duration in nanoseconds.
	RecordDuration = 1 << 0
	// RecordSampled marks a record that stands for several hits.
	RecordSampled = 1 << 1
)

// Record is one hit of a measure point.
type Record struct {
	// Monotonic is the time, nanoseconds of CLOCK_MONOTONIC on its node.
	Monotonic int64
	// Point is the tunlet's own id of the measure point; empty if the point
	// is not known any more.
	Point string
	// Flags: RecordDuration, RecordSampled.
	Flags uint16
	// Thread id.
	Thread int32
	// Value and Extra are what the point takes; see MeasurePoint and
	// dmlib_hooks.def.
	Value, Extra uint64

	units int // where in the run what was captured begins; 0: nothing was
}

// Records are a run of records of one process, valid during the call.
type Records struct {
	// Process that they come from.
	Process Handle
	// Lost counts records lost since the last run of this process.
	Lost uint64

	packed []byte
	index  []int32 // of the records in packed; nil: one after another
	toUnix int64
	names  map[uint32]string
}

// Len is the number of records.
func (r Records) Len() int {
	if r.index != nil {
		return len(r.index)
	}
	return len(r.packed) / RecordSize
}

// span is where record i begins and, with what it captured, ends.
func (r Records) span(i int) (from, to int) {
	switch {
	case r.index == nil:
		return i * RecordSize, (i + 1) * RecordSize
	case i+1 < len(r.index):
		return int(r.index[i]), int(r.index[i+1])
	}
	return int(r.index[i]), len(r.packed)
}

// At returns record i without allocating; it panics when i is out of range.
func (r Records) At(i int) Record {
	from, to := r.span(i)
	b := r.packed[from:to]
	units := 0
	if len(b) > RecordSize {
		units = from + RecordSize
	}
	return Record{
		Monotonic: int64(binary.LittleEndian.Uint64(b)),
		Point:     r.names[uint32(binary.LittleEndian.Uint16(b[8:]))],
		Flags:     binary.LittleEndian.Uint16(b[10:]),
		Thread:    int32(binary.LittleEndian.Uint32(b[12:])),
		Value:     binary.LittleEndian.Uint64(b[16:]),
		Extra:     binary.LittleEndian.Uint64(b[24:]),
		units:     units,
	}
}

// All yields the records in order without allocating.
func (r Records) All() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i := range r.Len() {
			if !yield(r.At(i)) {
				return
			}
		}
	}
}

// Time is the record's time on the calendar.
func (r Records) Time(rec Record) time.Time {
	return time.Unix(0, rec.Monotonic+r.toUnix)
}

func recordsFrom(n *attunev1.NamedRecords, names map[uint32]string) (Records, error) {
	if len(n.GetRecords())%RecordSize != 0 {
		return Records{}, fmt.Errorf("records of process %d: %d bytes are no multiple of %d",
			n.GetProcess(), len(n.GetRecords()), RecordSize)
	}
	return Records{
		Process: Handle(n.GetProcess()), Lost: n.GetLost(), packed: n.GetRecords(),
		index:  indexOf(n.GetRecords()),
		toUnix: n.GetMonotonicToUnixNano(), names: names,
	}, nil
}
