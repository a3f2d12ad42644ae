// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// reference judges by brute force: the median of a sorted copy, and the share
// of all ways to deal the values into two groups that look at least as extreme.
func reference(before, after []float64) (gain, p float64) {
	median := func(v []float64) float64 {
		v = slices.Sorted(slices.Values(v))
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	all := slices.Concat(before, after)
	observed := pairs(before, after)
	var below, above, total float64
	for mask := range 1 << len(all) {
		if bits.OnesCount(uint(mask)) != len(before) {
			continue
		}
		var a, b []float64
		for i, v := range all {
			if mask>>i&1 == 1 {
				a = append(a, v)
			} else {
				b = append(b, v)
			}
		}
		u := pairs(a, b)
		total++
		if u <= observed {
			below++
		}
		if u >= observed {
			above++
		}
	}
	return median(after) / median(before), min(1, 2*min(below, above)/total)
}

// pairs is the U statistic: pairs in which a is greater, ties count half.
func pairs(a, b []float64) float64 {
	u := 0.0
	for _, x := range a {
		for _, y := range b {
			if x > y {
				u++
			} else if x == y {
				u += 0.5
			}
		}
	}
	return u
}

// TestCompareMatchesReference checks the judge against a deliberately dumb one,
// with and without ties.
func TestCompareMatchesReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		before, after := values(rng), values(rng)
		wantGain, wantP := reference(before, after)
		if slices.Max(slices.Concat(before, after)) == slices.Min(slices.Concat(before, after)) {
			continue
		}
		j := compare(before, after, false)
		if math.Abs(j.Gain-wantGain) > 1e-9 || math.Abs(j.P-wantP) > 1e-6 {
			t.Fatalf("compare(%v, %v) = gain %v p %v, want gain %v p %v", before, after, j.Gain, j.P, wantGain, wantP)
		}
		low := compare(before, after, true)
		if math.Abs(low.Gain*wantGain-1) > 1e-9 || low.P != j.P {
			t.Fatalf("lower is better: gain %v, want %v", low.Gain, 1/wantGain)
		}
	}
}

// values returns 4 to 6 small positive numbers, half of the time with ties.
func values(rng *rand.Rand) []float64 {
	out := make([]float64, 4+rng.IntN(3))
	ties := rng.IntN(2) == 0
	for i := range out {
		out[i] = 1 + rng.Float64()*3
		if ties {
			out[i] = math.Round(out[i])
		}
	}
	return out
}

func TestGain(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name          string
		before, after float64
		lower         bool
		want          float64
	}{
		{name: "twice", before: 2, after: 4, want: 2},
		{name: "half", before: 4, after: 2, want: 0.5},
		{name: "from nothing", before: 0, after: 1, want: inf},
		{name: "to nothing", before: 1, after: 0, want: 0},
		{name: "nothing at all", before: 0, after: 0, want: 1},
		{name: "lower is better", before: 4, after: 2, lower: true, want: 2},
		{name: "lower is better, to nothing", before: 4, after: 0, lower: true, want: inf},
		{name: "lower is better, from nothing", before: 0, after: 4, lower: true, want: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := gain(tt.before, tt.after, tt.lower); got != tt.want {
				t.Errorf("gain = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	h := &History{}
	for i := range 3 * historySize {
		h.Add(time.Duration(i+1)*50*time.Millisecond, float64(i))
	}
	h.Add(h.last, 99) // not newer
	if len(h.points) != historySize || h.points[historySize-1].value == 99 {
		t.Errorf("%d points, last %v", len(h.points), h.points[len(h.points)-1])
	}
}
