// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bytes"
	"slices"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// unit is a record of a point, or with point 0 a continuation, that holds n.
func unit(point uint16, n int64) []byte {
	r := attunev1.Record{Point: point, Monotonic: n}
	if point == 0 {
		r.Flags = attunev1.RecordContinuation
	}
	return attunev1.AppendRecord(nil, r)
}

func named(id string, processes ...uint64) *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{Id: id, Delivery: attunev1.Delivery_DELIVERY_EVENT, Processes: processes}
}

// What is not the tunlet's does not reach it; what is, does with all that belongs to
// it, once, under however many names.
func TestRecords(t *testing.T) {
	first, second, other := &Feed{}, &Feed{}, &Feed{}
	first.Add(1, named("a"))
	first.Add(1, named("the same"))
	second.Add(1, named("a"))
	second.Add(2, named("b", 7))
	other.Add(1, named("a", 8))
	stray := unit(0, 9) // belongs to no record
	data := bytes.Join([][]byte{stray, unit(1, 1), unit(0, 2), unit(0, 3), unit(2, 4), unit(0, 5), unit(3, 6), unit(0, 7), unit(1, 8)}, nil)
	before := bytes.Clone(data)
	for _, tt := range []struct {
		name  string
		feed  *Feed
		lost  uint64
		want  [][]byte
		count uint64
		none  bool
	}{
		{"one point", first, 0, [][]byte{unit(1, 1), unit(0, 2), unit(0, 3), unit(1, 8)}, 2, false},
		{"two points", second, 0, [][]byte{unit(1, 1), unit(0, 2), unit(0, 3), unit(2, 4), unit(0, 5), unit(1, 8)}, 3, false},
		{"in another process", other, 0, nil, 0, true},
		{"in another process, with losses", other, 3, nil, 0, false},
		{"none", &Feed{}, 3, nil, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, count := tt.feed.Records(&attunev1.NamedRecords{Process: 7, Records: data, Lost: tt.lost})
			if want := bytes.Join(tt.want, nil); (got == nil) != tt.none || !bytes.Equal(got.GetRecords(), want) || count != tt.count || got != nil && got.GetLost() != tt.lost {
				t.Errorf("%d records %v, want %v", count, got, want)
			}
		})
	}
	if !bytes.Equal(data, before) {
		t.Error("the records of all were changed")
	}
}

func TestAggregates(t *testing.T) {
	f := &Feed{}
	f.Remove(1, "never there")
	f.Add(1, named("a"))
	f.Add(1, named("b", 7))
	f.Add(2, named("gone"))
	f.Remove(2, "gone")
	b := &attunev1.AggregateBatch{ToUnixNano: 5, Aggregates: []*attunev1.Aggregate{
		{Point: 1, Process: 7}, {Point: 1, Process: 8}, {Point: 2, Process: 7},
	}}
	var got []string
	r := f.Aggregates(b)
	for _, a := range r.GetAggregates() {
		got = append(got, a.GetPointId())
	}
	if !slices.Equal(got, []string{"a", "b", "a"}) || r.GetToUnixNano() != 5 {
		t.Errorf("%v", r)
	}
	f.Remove(1, "a")
	f.Remove(1, "b")
	if r := f.Aggregates(b); r != nil || f.single != 0 {
		t.Errorf("without points: %v", r)
	}
}
