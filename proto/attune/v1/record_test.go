// SPDX-License-Identifier: Apache-2.0

package attunev1_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// unit packs a record or a continuation by its four words, as RecordBatch
// describes them.
func unit(words ...uint64) (out []byte) {
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// head is the second word of a record, and continues that of a continuation.
func head(point, flags, thread uint64) uint64 { return point | flags<<16 | thread<<32 }
func continues(kinds uint64) uint64           { return 8<<16 | kinds<<32 }

func text(s string) attunev1.Captured {
	return attunev1.Captured{Kind: attunev1.CapturedString, Content: s}
}

func bits(kind attunev1.CapturedKind, bits uint64) attunev1.Captured {
	return attunev1.Captured{Kind: kind, Bits: bits}
}

func TestRecordWithCaptures(t *testing.T) {
	minus := int64(-2)
	cut := text("abcdefghi")
	cut.Cut = true
	record := attunev1.Record{Monotonic: -5, Point: 3, Flags: attunev1.RecordSampled, Thread: 9, Value: 7, Extra: 8}
	captured := []attunev1.Captured{
		cut, bits(attunev1.CapturedSigned, uint64(minus)), bits(attunev1.CapturedReal, math.Float64bits(2.5)),
		{Kind: attunev1.CapturedUnreadable}, bits(attunev1.CapturedUnsigned, 7),
	}
	want := slices.Concat(
		unit(math.MaxUint64-4, head(3, 2|3<<8, 9), 7, 8),
		unit(9|1<<32, continues(0x16325), binary.LittleEndian.Uint64([]byte("abcdefgh")), 'i'),
		unit(uint64(minus), continues(0), math.Float64bits(2.5), 0),
		unit(7, continues(0), 0, 0))
	packed := attunev1.AppendRecord(nil, record, captured...)
	if diff := cmp.Diff(want, packed); diff != "" {
		t.Fatal(diff)
	}
	got, rest, ok := attunev1.NextRecord(packed)
	if !ok || len(rest) != 0 || got.Timed() {
		t.Fatalf("read %+v, then %d bytes, %v", got, len(rest), ok)
	}
	if diff := cmp.Diff(captured, got.Captured()); diff != "" {
		t.Error(diff)
	}
	got.Continuations = nil
	record.Flags |= 3 << attunev1.RecordFollow
	if diff := cmp.Diff(record, got); diff != "" {
		t.Error(diff)
	}
}

func TestRecordRuns(t *testing.T) {
	record := func(point uint64) []byte { return unit(1, head(point, 0, 2), 3, 4) }
	follow := unit(0, continues(1), 0, 0)
	lost := slices.Concat(follow, follow) // of a record that is not there
	first := slices.Concat(record(7), follow, unit(1, head(7, attunev1.RecordSampled, 2), 3, 4))
	packed := slices.Concat(lost, first, record(8), follow, record(7), record(0)[:31])
	var got []attunev1.RecordRun
	for run := range attunev1.RecordRuns(packed) {
		got = append(got, run)
	}
	want := []attunev1.RecordRun{
		{Point: 7, Records: 2, Sampled: 1, Packed: first},
		{Point: 8, Records: 1, Packed: slices.Concat(record(8), follow)},
		{Point: 7, Records: 1, Packed: record(7)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := attunev1.CountRecords(packed); n != 4 {
		t.Errorf("%d records are counted, want 4", n)
	}
}

func TestCapturedTexts(t *testing.T) {
	cut := text("a\"b")
	cut.Cut = true
	tests := []struct {
		value attunev1.Captured
		text  string
		json  any
	}{
		{bits(attunev1.CapturedUnsigned, math.MaxUint64), "18446744073709551615", uint64(math.MaxUint64)},
		{bits(attunev1.CapturedSigned, math.MaxUint64), "-1", int64(-1)},
		{bits(attunev1.CapturedReal, math.Float64bits(0.5)), "0.5", 0.5},
		{bits(attunev1.CapturedReal, math.Float64bits(math.Inf(-1))), "-Inf", "-Inf"},
		{bits(attunev1.CapturedAddress, 255), "0xff", uint64(255)},
		{cut, `"a\"b"…`, `a"b`},
		{bits(attunev1.CapturedUnreadable, 0), "unreadable", nil},
		{attunev1.Captured{}, "unreadable", nil},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			if got := tt.value.String(); got != tt.text {
				t.Errorf("text %q", got)
			}
			if diff := cmp.Diff(tt.json, tt.value.JSON()); diff != "" {
				t.Error(diff)
			}
			if tt.value.Readable() != (tt.json != nil) {
				t.Errorf("readable: %v", tt.value.Readable())
			}
		})
	}
}

// FuzzRecords reads hostile bytes in all ways, which must agree, and packs what it
// has read, which must read as the same.
func FuzzRecords(f *testing.F) {
	whole := attunev1.AppendRecord(nil, attunev1.Record{Point: 3, Thread: 9}, text("some text"), bits(attunev1.CapturedReal, 1))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])                                                                                    // the end of the text is missing
	f.Add(whole[attunev1.RecordSize:])                                                                             // the record is
	f.Add(append(unit(0, head(3, 1<<8, 9), 0, 0), unit(1<<40, continues(0x5555), 0, 0)...))                        // a text without an end
	f.Add(append(unit(0, head(3, 255<<8, 9), 0, 0), unit(1, continues(math.MaxUint32), 2, 3)...))                  // too few words
	f.Add(append(unit(0, head(3, 0, 9), 0, 0), unit(math.MaxUint64, continues(0x55555555), math.MaxUint64, 1)...)) // lengths that overrun
	f.Fuzz(func(t *testing.T, packed []byte) {
		before := bytes.Clone(packed)
		var runs, again []byte
		var inRuns, records uint64
		for run := range attunev1.RecordRuns(packed) {
			runs, inRuns = append(runs, run.Packed...), inRuns+run.Records
		}
		for r := range attunev1.AllRecords(packed) {
			records++
			again = append(again, repacked(t, r, len(packed))...)
		}
		if records != inRuns || attunev1.CountRecords(packed) != records || attunev1.CountRecords(runs) != records {
			t.Errorf("%d records, %d in runs, %d counted", records, inRuns, attunev1.CountRecords(packed))
		}
		if attunev1.CountRecords(again) != records {
			t.Errorf("%d of %d records after they were packed again", attunev1.CountRecords(again), records)
		}
		if !bytes.Equal(before, packed) {
			t.Error("the packed records have been changed")
		}
	})
}

// repacked packs a record that was read from so many bytes, and checks that it
// reads as the same.
func repacked(t *testing.T, r attunev1.Record, size int) []byte {
	t.Helper()
	captured := r.Captured()
	for _, c := range captured {
		if len(c.Content) > size || c.String() == "" {
			t.Errorf("captured %+v out of %d bytes", c, size)
		}
	}
	r.Flags &^= attunev1.RecordContinuation
	packed := attunev1.AppendRecord(nil, r, captured...)
	got, rest, ok := attunev1.NextRecord(packed)
	if diff := cmp.Diff(captured, got.Captured()); diff != "" || !ok || len(rest) > 0 {
		t.Errorf("captured:\n%s", diff)
	}
	if got.Monotonic != r.Monotonic || got.Point != r.Point || got.Thread != r.Thread || got.Value != r.Value || got.Extra != r.Extra {
		t.Errorf("read %+v, packed as %+v", got, r)
	}
	return packed
}

// A record announces at most so many continuations; what reads them goes by
// their own flags.
func TestLongText(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<10)
	got, rest, _ := attunev1.NextRecord(attunev1.AppendRecord(nil, attunev1.Record{Point: 1}, text(long)))
	if len(rest) != 0 || got.Captured()[0].Content != long || got.Flags>>attunev1.RecordFollow != attunev1.RecordMaxFollow {
		t.Errorf("read %d bytes, flags %#x", len(got.Captured()[0].Content), got.Flags)
	}
}
