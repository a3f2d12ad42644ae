// SPDX-License-Identifier: Apache-2.0

package hits

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestSum(t *testing.T) {
	minus := func(v int64) uint64 { return uint64(-v) }
	tests := []struct {
		name   string
		signed bool
		values []uint64
		mean   float64
		// of the 50th and the 99th percentile
		half, most [2]uint64
	}{
		{"one value", false, []uint64{100}, 100, [2]uint64{100, 100}, [2]uint64{100, 100}},
		{"zeros", false, []uint64{0, 0, 0}, 0, [2]uint64{0, 0}, [2]uint64{0, 0}},
		{"by powers of two", false, []uint64{1, 2, 3, 4, 5, 6, 7, 200}, 28.5, [2]uint64{4, 7}, [2]uint64{128, 200}},
		{"even number of values", false, []uint64{1, 1, 8, 8}, 4.5, [2]uint64{1, 1}, [2]uint64{8, 8}},
		{"great ones", false, []uint64{math.MaxUint64, 1 << 62}, 1.1529215046068470e19, [2]uint64{1 << 62, math.MaxUint64}, [2]uint64{1 << 62, math.MaxUint64}},
		{"signed", true, []uint64{minus(5), minus(3), 6}, -2.0 / 3, [2]uint64{minus(5), 0}, [2]uint64{4, 6}},
		{"all negative", true, []uint64{minus(5), minus(3)}, -4, [2]uint64{minus(5), minus(3)}, [2]uint64{minus(5), minus(3)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Sum{Signed: tt.signed}
			for _, v := range tt.values {
				s.Add(v)
			}
			if s.Mean() != tt.mean {
				t.Errorf("mean %v, want %v", s.Mean(), tt.mean)
			}
			for percent, want := range map[float64][2]uint64{50: tt.half, 99: tt.most} {
				least, greatest, ok := s.Percentile(percent)
				if got := [2]uint64{least, greatest}; !ok || got != want {
					t.Errorf("percentile %v: %v, want %v", percent, got, want)
				}
			}
		})
	}
	if _, _, ok := (&Sum{}).Percentile(50); ok {
		t.Error("a percentile of nothing")
	}
}

func TestJoin(t *testing.T) {
	s := Sum{Signed: true}
	s.Join(&attunev1.Aggregate{Count: 2, Sum: 3, Min: math.MaxUint64, Max: 4, Histogram: []uint64{1, 0, 0, 1}})
	s.Join(&attunev1.Aggregate{Count: 1, Sum: 9, Histogram: []uint64{0, 0, 0, 0, 1}, Unreadable: 5}) // its extremes are not known
	s.Join(&attunev1.Aggregate{})
	if s.Count != 3 || s.Total != 12 || int64(s.Least) != -1 || s.Greatest != 4 || s.Unreadable != 5 || len(s.Histogram) != 5 {
		t.Errorf("%+v", s)
	}
	a := s.Aggregate(7, 8, Key{Value: 9, Has: true})
	if a.GetPoint() != 7 || a.GetProcess() != 8 || a.GetKey() != 9 {
		t.Errorf("%v", a)
	}
	back := Sum{Signed: true}
	if back.Join(a); !cmp.Equal(s, back) {
		t.Errorf("%+v as an aggregate: %+v", s, back)
	}
	unknown := Sum{Count: 1, Total: 9, Histogram: []uint64{0, 0, 0, 0, 1, 0, 0}}
	if a := unknown.Aggregate(1, 2, Key{}); a.GetMin() != 0 || a.GetMax() != 0 || a.Key != nil || len(a.GetHistogram()) != 5 {
		t.Errorf("bounds that are not known: %v", a)
	}
}

// TestMeanOfAddresses: the mean is right where 64 bits do not hold the sum, and however the
// values come.
func TestMeanOfAddresses(t *testing.T) {
	const address, times = 1 << 47, 1 << 17
	one := func(count uint64, values ...uint64) *attunev1.Aggregate {
		a := &attunev1.Aggregate{Count: count * uint64(len(values)), Min: slices.Min(values), Max: slices.Max(values), Histogram: make([]uint64, 64)}
		for _, v := range values {
			a.Sum += count * v
			a.Histogram[bits.Len64(v)] += count
		}
		return a
	}
	for _, signed := range []bool{false, true} {
		single, whole, halves := Sum{Signed: signed}, Sum{Signed: signed}, Sum{Signed: signed}
		for range times {
			single.Add(address)
		}
		whole.Join(one(times, address))
		halves.Join(one(times/2, address))
		halves.Join(one(times/2, address))
		spread := Sum{Signed: signed}
		spread.Join(one(times/2, address-1, address/2, 3))
		for name, s := range map[string]*Sum{"single": &single, "one aggregate": &whole, "several": &halves} {
			if s.Mean() != address || s.Total != 0 {
				t.Errorf("%s, signed %v: mean %v of total %d, want %v", name, signed, s.Mean(), s.Total, float64(address))
			}
		}
		if want := float64(address+address/2+2) / 3; math.Abs(spread.Mean()/want-1) > 1e-9 {
			t.Errorf("different ones, signed %v: mean %v, want %v", signed, spread.Mean(), want)
		}
	}
	few := Sum{}
	few.Join(&attunev1.Aggregate{Count: 2, Sum: math.MaxUint64 - 1}) // its histogram is not known
	negative := Sum{Signed: true}
	garbage := int64(math.MinInt64)
	negative.Join(&attunev1.Aggregate{Count: 101, Sum: uint64(garbage + 100), Min: uint64(garbage), Max: 1, Histogram: []uint64{1, 100}})
	if few.Mean() != math.MaxInt64 || negative.Mean() >= 0 {
		t.Errorf("means %v, %v", few.Mean(), negative.Mean())
	}
}

func TestStateText(t *testing.T) {
	placed := attunev1.PointState_POINT_STATE_PLACED
	for want, st := range map[string]*attunev1.PointStatus{
		"waiting: the process has not come to a safe point yet": nil,
		"placed by got, about 6 ns a hit":                       {State: placed, Mechanism: "got", CostNanos: 6, Symbols: []string{"malloc"}},
		"placed by uprobe, 1.17µs a hit, in a, b::c(int): why": {State: placed, Mechanism: "uprobe", CostNanos: 1172, CostMeasured: true,
			Symbols: []string{"a", "_ZN1b1cEi"}, Reason: "why"},
		"placed by patch, about 9 ns a hit, in a, b, c, d, e and 2 more": {State: placed, Mechanism: "patch", CostNanos: 9,
			Symbols: []string{"a", "b", "c", "d", "e", "f", "g"}},
		"placed by hook, about 3 ns a hit, in place 1.23s late: why": {State: placed, Mechanism: "hook", CostNanos: 3, Reason: "why", LateNanos: 1_234_567_890},
		"placed by hook, about 2 ns a hit":                           {State: placed, Mechanism: "hook", CostNanos: 2, LateNanos: 50_000_000},
		"degraded to one hit in 128: too dear": {State: placed, Mechanism: "got", Reason: "why", DegradedReason: "too dear",
			DegradedTo: attunev1.Delivery_DELIVERY_SAMPLED, DegradedEvery: 128},
		"degraded to counts: too dear": {State: placed, DegradedTo: attunev1.Delivery_DELIVERY_AGGREGATE, DegradedReason: "too dear"},
		"off: too dear":                {State: attunev1.PointState_POINT_STATE_OFF, Mechanism: "got", DegradedReason: "too dear"},
		"refused: no such symbol":      {State: attunev1.PointState_POINT_STATE_REFUSED, Reason: "no such symbol"},
		"removed":                      {State: attunev1.PointState_POINT_STATE_REMOVED},
	} {
		if got := StateText(st); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
