// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"math"
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestAggregateHistogram(t *testing.T) {
	// 2 values of 1, 3 of 4 to 7, 1 of 64 to 127.
	h := []uint64{0, 2, 0, 3, 0, 0, 0, 1}
	for _, tt := range []struct {
		name  string
		least uint64
		count uint64
		share float64
	}{
		{"all", 0, 6, 1},
		{"from one", 1, 6, 1},
		{"from two", 2, 4, (18. + 96) / (3 + 18 + 96)},
		{"within a bucket counts the bucket", 5, 4, (18. + 96) / (3 + 18 + 96)},
		{"from 64", 64, 1, 96. / (3 + 18 + 96)},
		{"beyond", 128, 0, 0},
		{"greatest", math.MaxUint64, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := sdk.Aggregate{Count: 6, Sum: 100, Histogram: h}
			if n := a.CountFrom(tt.least); n != tt.count {
				t.Errorf("count %d, want %d", n, tt.count)
			}
			if s := a.ShareFrom(tt.least); math.Abs(s-tt.share) > 1e-12 {
				t.Errorf("share %v, want %v", s, tt.share)
			}
		})
	}
}

func TestAggregateWithoutHits(t *testing.T) {
	var a sdk.Aggregate
	if a.Mean() != 0 || a.CountFrom(0) != 0 || a.ShareFrom(0) != 0 {
		t.Errorf("mean %v, count %v, share %v, want zeros", a.Mean(), a.CountFrom(0), a.ShareFrom(0))
	}
	if (sdk.Aggregates{From: start, To: start}).Seconds() != 0 {
		t.Error("an interval that is none has a length")
	}
}

func TestAggregateOfNegativeValues(t *testing.T) {
	a := sdk.Aggregate{Count: 2, Sum: math.MaxUint64 - 5, Signed: true}
	if a.Total() != -6 || a.Mean() != -3 {
		t.Errorf("total %v, mean %v, want -6 and -3", a.Total(), a.Mean())
	}
}
