// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"encoding/binary"
	"iter"
)

// RecordSize is the size in bytes of a packed record and of a continuation. How
// they lie is described at RecordBatch.records.
const RecordSize = 32

// Flags of a record.
const (
	// RecordDuration marks a record whose extra value is a duration in
	// nanoseconds.
	RecordDuration = 1 << iota
	// RecordSampled marks a record that stands for several hits.
	RecordSampled
	_ // was a record without a time of its own
	// RecordContinuation marks what belongs to the record before it and is none.
	RecordContinuation

	// RecordFollow is the bit of the flags from which on a record says how many
	// continuations follow it, up to RecordMaxFollow.
	RecordFollow    = 8
	RecordMaxFollow = 1<<8 - 1
)

// Where the parts of a record are. A continuation has its kinds at recordThread
// and its words at the other places of eight bytes.
const (
	recordTime   = 0
	recordPoint  = 8
	recordFlags  = 10
	recordThread = 12
	recordValue  = 16
	recordExtra  = 24
)

// Record is one hit of a measure point.
type Record struct {
	// Monotonic is the time in nanoseconds of CLOCK_MONOTONIC.
	Monotonic int64
	// Point is the index of the measure point.
	Point uint16
	// Flags are those above.
	Flags uint16
	// Thread is the id of the thread.
	Thread uint32
	// Value and Extra are what the point takes.
	Value, Extra uint64
	// Continuations hold what the hit captured, packed; it shares the memory that
	// the record was read from.
	Continuations []byte
}

// Timed says whether Extra is how long the call took, in nanoseconds.
func (r Record) Timed() bool { return r.Flags&RecordDuration != 0 }

// NextRecord reads the first of packed records with its continuations, and
// returns what follows them; false if there is none. It skips continuations that
// have lost their record, and never fails: what is too short to be a record is
// left out.
func NextRecord(packed []byte) (r Record, rest []byte, ok bool) {
	packed = packed[continued(packed):]
	if len(packed) < RecordSize {
		return Record{}, nil, false
	}
	b, rest := packed[:RecordSize], packed[RecordSize:]
	n := continued(rest)
	return Record{
		Monotonic:     int64(binary.LittleEndian.Uint64(b[recordTime:])),
		Point:         binary.LittleEndian.Uint16(b[recordPoint:]),
		Flags:         binary.LittleEndian.Uint16(b[recordFlags:]),
		Thread:        binary.LittleEndian.Uint32(b[recordThread:]),
		Value:         binary.LittleEndian.Uint64(b[recordValue:]),
		Extra:         binary.LittleEndian.Uint64(b[recordExtra:]),
		Continuations: rest[:n:n],
	}, rest[n:], true
}

// AllRecords yields packed records in order.
func AllRecords(packed []byte) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for {
			r, rest, ok := NextRecord(packed)
			if !ok || !yield(r) {
				return
			}
			packed = rest
		}
	}
}

// RecordRun is packed records of one point that follow one another.
type RecordRun struct {
	// Point is the index of the measure point.
	Point uint32
	// Records is how many they are, and Sampled how many of them stand for several hits.
	Records, Sampled uint64
	// Packed holds them with their continuations, in the memory that they were
	// read from.
	Packed []byte
}

// RecordRuns yields packed records in order, run by run, for those who count or
// pass on what they do not read. Together the runs are what AllRecords yields.
func RecordRuns(packed []byte) iter.Seq[RecordRun] {
	return func(yield func(RecordRun) bool) {
		packed = packed[continued(packed):]
		for len(packed) >= RecordSize {
			run := RecordRun{Point: pointOf(packed)}
			end := 0
			for len(packed)-end >= RecordSize && pointOf(packed[end:]) == run.Point {
				run.Records++
				if packed[end+recordFlags]&RecordSampled != 0 {
					run.Sampled++
				}
				end += RecordSize
				end += continued(packed[end:])
			}
			run.Packed, packed = packed[:end:end], packed[end:]
			if !yield(run) {
				return
			}
		}
	}
}

// CountRecords counts packed records, without their continuations.
func CountRecords(packed []byte) (n uint64) {
	for run := range RecordRuns(packed) {
		n += run.Records
	}
	return n
}

// AppendRecord appends a packed record to others. What it captured follows it,
// in place of its Continuations, and is announced in its flags.
func AppendRecord(to []byte, r Record, captured ...Captured) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(r.Monotonic))
	to = binary.LittleEndian.AppendUint16(to, r.Point)
	to = binary.LittleEndian.AppendUint16(to, r.Flags&(1<<RecordFollow-1))
	to = binary.LittleEndian.AppendUint32(to, r.Thread)
	to = binary.LittleEndian.AppendUint64(to, r.Value)
	to = binary.LittleEndian.AppendUint64(to, r.Extra)
	if len(captured) == 0 {
		return to
	}
	return appendCaptured(to, captured)
}

// continued is the length of the continuations that packed units begin with.
func continued(units []byte) (n int) {
	for len(units)-n >= RecordSize && units[n+recordFlags]&RecordContinuation != 0 {
		n += RecordSize
	}
	return n
}

func pointOf(unit []byte) uint32 {
	return uint32(binary.LittleEndian.Uint16(unit[recordPoint:]))
}
