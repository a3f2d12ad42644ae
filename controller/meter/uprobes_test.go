// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"
	"testing"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
)

func TestDifference(t *testing.T) {
	reading := func(count, least, most uint64) uprobe.Aggregate {
		a := uprobe.Aggregate{Watch: 1, Counts: aggregate.Counts{Count: count, Sum: 10 * count, Min: least, Max: most, Known: least <= most}}
		a.Histogram[4] = uint32(count)
		return a
	}
	anew := func(a uprobe.Aggregate) uprobe.Aggregate { a.Watch = 2; return a }
	tests := []struct {
		name              string
		before, now       uprobe.Aggregate
		count, least, max uint64
	}{
		{"first", uprobe.Aggregate{}, reading(3, 5, 9), 3, 5, 9},
		{"later", reading(3, 5, 9), reading(10, 7, 8), 7, 7, 8},
		{"nothing new", reading(3, 5, 9), reading(3, math.MaxUint64, 0), 0, 0, 0},
		{"extremes not known", reading(3, 5, 9), reading(4, math.MaxUint64, 0), 1, 0, 0},
		{"placed anew", reading(100, 5, 9), anew(reading(2, 8, 8)), 2, 8, 8},
		{"placed anew, more hits than before", reading(2, 5, 9), anew(reading(100, 8, 8)), 100, 8, 8},
	}
	for _, test := range tests {
		got := difference(uprobeKey{handle: 1, point: 2}, test.before, test.now)
		var counted uint64
		for _, n := range got.GetHistogram() {
			counted += n
		}
		if got.GetCount() != test.count || got.GetSum() != 10*test.count || counted != test.count ||
			got.GetMin() != test.least || got.GetMax() != test.max {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
