// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestRecordsWithCaptures(t *testing.T) {
	captured := []Captured{{Kind: attunev1.CapturedString, Content: "abcdefghi", Cut: true}, {Kind: attunev1.CapturedReal, Bits: math.Float64bits(2.5)}}
	record := func(value uint64) attunev1.Record {
		return attunev1.Record{Monotonic: 5, Point: 1, Thread: 7, Value: value}
	}
	packed := attunev1.AppendRecord(nil, record(10))
	packed = attunev1.AppendRecord(packed, record(11), captured...)
	packed = attunev1.AppendRecord(packed, record(12))
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
	if diff := cmp.Diff(captured, records.Captured(records.At(1))); diff != "" {
		t.Error(diff)
	}
	for name, of := range map[string]Records{"with captures": records, "of records only": {packed: packed[:attunev1.RecordSize]}} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("there is a record behind the last one")
				}
			}()
			of.At(of.Len())
		})
	}
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
