// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// packUnit packs a record, or with point 0 a continuation.
func packUnit(first uint64, point, flags uint16, kinds uint32, second, third uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, first)
	b = binary.LittleEndian.AppendUint16(b, point)
	b = binary.LittleEndian.AppendUint16(b, flags)
	b = binary.LittleEndian.AppendUint32(b, kinds)
	b = binary.LittleEndian.AppendUint64(b, second)
	return binary.LittleEndian.AppendUint64(b, third)
}

func TestRecordsWithCaptures(t *testing.T) {
	var packed []byte
	plain := func(value uint64) { packed = append(packed, packUnit(5, 1, 0, 7, value, 0)...) }
	follow := func(first uint64, kinds uint32, second, third uint64) {
		packed = append(packed, packUnit(first, 0, RecordContinuation, kinds, second, third)...)
	}
	plain(10)
	plain(11)
	// A string "abcdefghi", cut; -2; 2.5; something unreadable; 7.
	follow(9|1<<32, 0x16325, binary.LittleEndian.Uint64([]byte("abcdefgh")), 'i')
	minusTwo := int64(-2)
	follow(uint64(minusTwo), 0, math.Float64bits(2.5), 0)
	follow(7, 0, 0, 0)
	plain(12)
	records, err := recordsFrom(&attunev1.NamedRecords{Records: packed}, map[uint32]string{1: "p"})
	if err != nil {
		t.Fatal(err)
	}
	var values []uint64
	for r := range records.All() {
		values = append(values, r.Value)
	}
	if diff := cmp.Diff([]uint64{10, 11, 12}, values); diff != "" || records.Len() != 3 {
		t.Error(records.Len(), diff)
	}
	if got := records.Captured(records.At(0)); got != nil {
		t.Errorf("a record without captures has %v", got)
	}
	got := records.Captured(records.At(1))
	if len(got) != 5 {
		t.Fatalf("captured %+v", got)
	}
	if text, cut := got[0].Text(); text != "abcdefghi" || !cut {
		t.Errorf("text %q, cut %v", text, cut)
	}
	if got[1].Int() != -2 || got[1].Real() != -2 || got[2].Real() != 2.5 || got[2].Int() != 2 ||
		got[3].Readable() || got[4].Uint() != 7 || !got[4].Readable() {
		t.Errorf("captured %+v", got)
	}
}

// FuzzCaptured reads whatever follows a record.
func FuzzCaptured(f *testing.F) {
	f.Add(packUnit(1<<40, 0, RecordContinuation, 0x55555555, 1<<31, 2))
	f.Fuzz(func(t *testing.T, units []byte) {
		records, err := recordsFrom(&attunev1.NamedRecords{Records: units}, nil)
		if err != nil {
			return
		}
		for r := range records.All() {
			if n := len(records.Captured(r)); n > 8 {
				t.Fatalf("%d captures", n)
			}
		}
	})
}

func TestPointWithCaptures(t *testing.T) {
	p := Point{
		ID: "p", Symbols: []string{"f"}, Value: "bytes", Key: "peer", MaxKeys: 9,
		Captures: []Capture{Parameter("bytes", 1, U64), Parameter("peer", 0, I32, 8), Global("g", "lib*", "x", String, 0).Limit(7)},
		Where:    []Condition{{Capture: "bytes", Is: GreaterEqual, Operand: Uint(5)}},
	}.proto()
	if p.GetValueCapture() != "bytes" || p.GetKeyCapture() != "peer" || p.GetMaxKeys() != 9 || len(p.GetCaptures()) != 3 ||
		p.GetCaptures()[1].GetDereference()[0] != 8 || p.GetCaptures()[2].GetStringLimit() != 7 ||
		p.GetPredicates()[0].GetComparison() != attunev1.Comparison_COMPARISON_GREATER_EQUAL || p.GetPredicates()[0].GetOperand().GetUnsigned() != 5 {
		t.Errorf("point %v", p)
	}
}
