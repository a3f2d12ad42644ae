// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// rankReference is the signed rank test by its definition: of all ways to give
// the distances signs, the share with at least the observed sum of ranks.
func rankReference(gains []float64, least float64) float64 {
	var distances []float64
	for _, g := range gains {
		if g != least {
			distances = append(distances, math.Log(g)-math.Log(least))
		}
	}
	rank := func(i int) float64 {
		below, same := 0, 0
		for _, d := range distances {
			switch {
			case math.Abs(d) < math.Abs(distances[i]):
				below++
			case math.Abs(d) == math.Abs(distances[i]):
				same++
			}
		}
		return float64(below) + float64(same+1)/2
	}
	observed := 0.0
	for i, d := range distances {
		if d > 0 {
			observed += rank(i)
		}
	}
	reached := 0
	for signs := range 1 << len(distances) {
		sum := 0.0
		for i := range distances {
			if signs>>i&1 == 1 {
				sum += rank(i)
			}
		}
		if sum >= observed {
			reached++
		}
	}
	return float64(reached) / float64(int(1)<<len(distances))
}

// TestSignedRankMatchesReference checks it against a deliberately dumb one, with
// ties, with values equal to the least, and with infinite gains.
func TestSignedRankMatchesReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		gains := make([]float64, rng.IntN(9))
		for i := range gains {
			switch gains[i] = math.Exp(rng.NormFloat64()); rng.IntN(4) {
			case 0:
				gains[i] = []float64{0, 0.5, 1, 2, math.Inf(1)}[rng.IntN(5)]
			case 1:
				gains[i] = 1.05
			}
		}
		for _, least := range []float64{1, 1.05} {
			if got, want := signedRank(gains, least), rankReference(gains, least); math.Abs(got-want) > 1e-12 {
				t.Fatalf("signedRank(%v, %v) = %v, want %v", gains, least, got, want)
			}
		}
	}
}

func TestTypicalGain(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name          string
		before, after []float64
		lower         bool
		want          float64
	}{
		{name: "nothing", want: 1},
		{name: "twice", before: []float64{1, 1, 1}, after: []float64{2, 2, 2}, want: 2},
		{name: "an outlier", before: []float64{1, 1, 1}, after: []float64{2, 2, 900}, want: 2},
		{name: "two kinds", before: []float64{1, 10, 1, 10}, after: []float64{2, 20, 20, 2}, want: 2},
		{name: "lower is better", before: []float64{4, 4}, after: []float64{2, 2}, lower: true, want: 2},
		{name: "from nothing", before: []float64{0, 0}, after: []float64{2, 2}, want: inf},
		{name: "to nothing", before: []float64{2, 2}, after: []float64{0, 0}, want: 0},
		{name: "as far down as up", before: []float64{0, 1e100}, after: []float64{1e-320, 1e-320}, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := typicalGain(tt.before, tt.after, tt.lower)
			if got != tt.want && math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("typical gain %v, want %v", got, tt.want)
			}
		})
	}
}

// TestTurnsOfNothing: of pairs from nothing or to nothing the gain is infinite or 0, of few
// pairs and of many, and no figure is anything else but a number.
func TestTurnsOfNothing(t *testing.T) {
	for _, n := range []int{2, leastPairs} {
		for _, gain := range []float64{0, math.Inf(1)} {
			for _, lower := range []bool{false, true} {
				tr := &turns{off: sum{amount: 8, seconds: 2, windows: 9}, in: sum{amount: 8, seconds: 2, windows: 9}, within: []float64{1.1, 1.2}}
				for range n {
					tr.compared = append(tr.compared, pair{gain: gain})
				}
				f := tr.rank(tr.compared, 0.05, lower)
				j := tr.judgement(f, lower)
				before, after := 0.0, 4.0
				if (gain == 0) != lower {
					before, after = after, before
				}
				if j.Gain != gain || j.Before.Median != before || j.After.Median != after || !(j.Low <= gain && gain <= j.High) || !(j.P >= 0 && j.P <= 1) {
					t.Errorf("%d pairs of %v, lower %v: %+v", n, gain, lower, *j)
				}
			}
		}
	}
}

// TestScattered checks that turns get lengths that differ and fill the range.
func TestScattered(t *testing.T) {
	var all []float64
	for n := range uint64(64) {
		all = append(all, scattered(n))
	}
	slices.Sort(all)
	if all[0] < 0 || all[63] >= 1 || all[0] > 0.1 || all[63] < 0.9 || len(slices.Compact(all)) != 64 {
		t.Errorf("not spread over 0 to 1: %v", all)
	}
}
