// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// memory is an aggregate of two hits with these extremes in interval 6.
func memory(key, least, greatest uint64) (m Memory) {
	m[abi.AggregateCountAt/8], m[abi.AggregateSumAt/8], m[abi.AggregateKeyAt/8] = 2, least+greatest, key
	m[abi.AggregateLeastAt/8], m[abi.AggregateGreatestAt/8] = ^least, greatest
	m[abi.AggregateHistogramAt/8+1] = 1<<32 | 1 // buckets 2 and 3
	return m
}

func read(m *Memory, intervals ...uint32) Counts {
	c := Counts{Count: 99, Min: 99, Max: 99, Known: true} // of a reading before
	m.Read(&c, intervals...)
	return c
}

func counts(count, sum, least, greatest uint64) Counts {
	c := Counts{Count: count, Sum: sum, Min: least, Max: greatest, Known: least != 0}
	c.Histogram[2], c.Histogram[3] = uint32(count/2), uint32(count/2)
	return c
}

func TestRead(t *testing.T) {
	var empty Memory
	m := memory(0, 3, 4)
	for _, test := range []struct {
		name      string
		m         *Memory
		intervals []uint32
		want      Counts
	}{
		{"never hit", &empty, []uint32{6, 7}, Counts{}},
		{"of the interval", &m, []uint32{6, 7}, counts(2, 7, 3, 4)},
		{"of the next, where the interval has none", &m, []uint32{5, 6}, counts(2, 7, 3, 4)},
		{"none known", &m, []uint32{7}, counts(2, 7, 0, 0)},
	} {
		if diff := cmp.Diff(test.want, read(test.m, test.intervals...)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	m.Reset(7)
	if got := read(&m, 6); !got.Known {
		t.Error("a reset of one interval takes the extremes of the other")
	}
	m.Reset(8)
	if diff := cmp.Diff(counts(2, 7, 0, 0), read(&m, 6, 7)); diff != "" {
		t.Error(diff)
	}
}

// TestZeroIsAnExtreme: only 0 and the greatest number leave a word as it was.
func TestZeroIsAnExtreme(t *testing.T) {
	for _, value := range []uint64{0, 1<<64 - 1} {
		m := memory(0, value, value)
		if got := read(&m, 0); !got.Known || got.Min != value || got.Max != value {
			t.Errorf("%d alone: %+v", value, got)
		}
	}
}

func TestCounts(t *testing.T) {
	sum := counts(2, 7, 0, 0)
	for _, c := range []Counts{counts(2, 7, 3, 4), counts(2, 9, 2, 7), {}} {
		sum.Add(&c)
	}
	want := counts(6, 23, 2, 7)
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
	last := counts(4, 14, 9, 9)
	if diff := cmp.Diff(counts(2, 9, 2, 7), sum.Since(&last)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Counts{}, sum.Since(&sum)); diff != "" {
		t.Error(diff)
	}
	values := sum.Values(5)
	if values.Count != 6 || values.Total != 23 || values.Least != 2 || values.Greatest != 7 || !values.Bounded || values.Histogram[3] != 3 || values.Unreadable != 5 {
		t.Errorf("values %+v", values)
	}
	sum.RestoreSigns()
	if sum.Min != 2|abi.Sign || sum.Max != 7|abi.Sign {
		t.Errorf("signed: %+v", sum)
	}
}

func TestTable(t *testing.T) {
	table := Table{memory(1, 3, 3), memory(0, 5, 5), memory(1, 7, 7), memory(99, 9, 9)}
	got := map[uint64]int{}
	table.Each(func(place int, key uint64, _ *Memory) { got[key] = place })
	if diff := cmp.Diff(map[uint64]int{0: 0, 1: 2, 99: 3}, got); diff != "" {
		t.Error(diff)
	}
}
