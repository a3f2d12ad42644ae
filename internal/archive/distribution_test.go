// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDescribe(t *testing.T) {
	d := Describe("wall_seconds", []float64{2, 4, 4, 4, 5, 5, 7, 9}, 0, 0.5, 1)
	if d.Tasks != 8 || d.Least != 2 || d.Most != 9 || d.Mean != 5 || math.Abs(*d.Deviation-2.13809) > 1e-5 {
		t.Errorf("%+v", d)
	}
	// By the definition: n/((n-1)(n-2)) Σz³, and its like for the fourth moment.
	if math.Abs(*d.Skewness-0.818488) > 1e-5 || math.Abs(*d.Kurtosis-0.940625) > 1e-5 {
		t.Errorf("skewness %v, kurtosis %v", *d.Skewness, *d.Kurtosis)
	}
	if d.Quantiles[0].Value != 2 || d.Quantiles[1].Value != 4.5 || d.Quantiles[2].Value != 9 {
		t.Errorf("quantiles %+v", d.Quantiles)
	}
	few := Describe("x", []float64{1, 2, 6}, 0.25, 0.5, 0.75)
	if few.Quantiles[0].Value != 1.5 || few.Quantiles[1].Value != 2 || few.Quantiles[2].Value != 4 {
		t.Errorf("quantiles of few %+v", few.Quantiles)
	}
	if d.Sum != nil { // of tasks beside each other it would be no time
		t.Errorf("wall times together %v", *d.Sum)
	}
	if d := Describe("io.read_bytes", []float64{1, 4}); d.Sum == nil || *d.Sum != 5 {
		t.Errorf("bytes together: %+v", d)
	}
	for _, few := range [][]float64{nil, {1}, {3, 3, 3, 3}, {1, 2}} {
		if _, err := json.Marshal(Describe("x", few, 0.5)); err != nil {
			t.Errorf("%v: %v", few, err)
		}
	}
}

// Each value is in one bin, which has it within its edges.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 50 {
		var values []float64
		for range 1 + random.IntN(300) {
			v := random.Float64() * 10
			if round%2 == 0 {
				v = math.Exp(v)
			}
			values = append(values, v)
		}
		slices.Sort(values)
		bins := histogram(values)
		begin := 0
		for i, b := range bins {
			for _, v := range values[begin : begin+b.Tasks] {
				if v < b.From*(1-1e-12) || v > b.To*(1+1e-12) {
					t.Fatalf("%v is in bin %+v", v, b)
				}
			}
			begin += b.Tasks
			if i > 0 && bins[i-1].To != b.From {
				t.Fatalf("a gap between %+v and %+v", bins[i-1], b)
			}
		}
		if begin != len(values) || len(bins) > maxBins {
			t.Fatalf("%d of %d values in %d bins", begin, len(values), len(bins))
		}
	}
}
