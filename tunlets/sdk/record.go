// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"iter"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Flags of a record.
const (
	// RecordDuration marks a record whose Extra is a duration in nanoseconds.
	RecordDuration = attunev1.RecordDuration
	// RecordSampled marks a record that stands for several hits.
	RecordSampled = attunev1.RecordSampled
)

// Captured is a captured value.
type Captured = attunev1.Captured

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
	// Value is what the point takes: of a function its parameter, of a hook what Point.Hook
	// says, or the capture that Point.Value names. Extra is, of a hook, the address returned
	// (free: 0), the file descriptor, or the error of a lock that failed;
	// with RecordDuration a duration.
	Value, Extra uint64

	captured int // where in the run what was captured begins; 0: nothing was
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
	return len(r.packed) / attunev1.RecordSize
}

// At returns record i without allocating; it panics when i is out of range.
func (r Records) At(i int) Record {
	from := i * attunev1.RecordSize
	if r.index != nil {
		from = int(r.index[i])
	}
	_ = r.packed[from] // NextRecord does not panic
	packed, _, _ := attunev1.NextRecord(r.packed[from:])
	captured := 0
	if len(packed.Continuations) > 0 {
		captured = from + attunev1.RecordSize
	}
	return Record{
		Monotonic: packed.Monotonic, Point: r.names[uint32(packed.Point)], Flags: packed.Flags,
		Thread: int32(packed.Thread), Value: packed.Value, Extra: packed.Extra, captured: captured,
	}
}

// Captured returns what a record of this run captured, in the order of the
// point's Captures; nil if that was nothing. It allocates.
func (r Records) Captured(rec Record) []Captured {
	if rec.captured == 0 || rec.captured > len(r.packed) {
		return nil
	}
	packed, _, _ := attunev1.NextRecord(r.packed[rec.captured-attunev1.RecordSize:])
	return packed.Captured()
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
	if len(n.GetRecords())%attunev1.RecordSize != 0 {
		return Records{}, fmt.Errorf("records of process %d: %d bytes are no multiple of %d",
			n.GetProcess(), len(n.GetRecords()), attunev1.RecordSize)
	}
	return Records{
		Process: Handle(n.GetProcess()), Lost: n.GetLost(), packed: n.GetRecords(),
		index:  indexOf(n.GetRecords()),
		toUnix: n.GetMonotonicToUnixNano(), names: names,
	}, nil
}

// indexOf lists where the records are among packed ones and continuations; nil
// if there are records only.
func indexOf(packed []byte) []int32 {
	n := attunev1.CountRecords(packed)
	if n*attunev1.RecordSize == uint64(len(packed)) {
		return nil
	}
	index := make([]int32, 0, n)
	for rest := packed; ; {
		r, after, ok := attunev1.NextRecord(rest)
		if !ok {
			return index
		}
		index = append(index, int32(len(packed)-len(after)-len(r.Continuations)-attunev1.RecordSize))
		rest = after
	}
}
