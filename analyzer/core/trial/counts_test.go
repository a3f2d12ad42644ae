// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// eventsOf makes samples of 50 ms of a rate of events at random, in clusters of that many
// on average.
func eventsOf(rng *rand.Rand, samples int, rate, cluster float64) []point {
	out := make([]point, samples)
	for i := range out {
		from := time.Duration(i) * 50 * time.Millisecond
		out[i] = point{from, from + 50*time.Millisecond, 0}
		for at := rng.ExpFloat64(); at < rate/cluster*0.05; at += rng.ExpFloat64() {
			out[i].value += 20
			for rng.Float64() < 1-1/cluster {
				out[i].value += 20
			}
		}
	}
	return out
}

// comparisonOf counts events in pairs of 2 s each, the second of which has ratio times
// the rate.
func comparisonOf(rng *rand.Rand, pairs int, rate, ratio, cluster float64) counts {
	var compared, same []stretches
	var seen []point
	for range pairs {
		off, on := eventsOf(rng, 40, rate, cluster), eventsOf(rng, 40, rate*ratio, cluster)
		compared = append(compared, stretches{sumOf(off), sumOf(on)})
		same = append(same, stretches{sumOf(off[:20]), sumOf(off[20:])}, stretches{sumOf(on[:20]), sumOf(on[20:])})
		seen = append(append(seen, off...), on...)
	}
	return newCounts(compared, same, usualAmount(seen))
}

// The interval has the true ratio in 95 % of all cases, and what is called a gain at a
// level of 1 % is chance in no more than that, of single events and of clusters.
func TestCountsHoldWhatTheyPromise(t *testing.T) {
	tests := []struct {
		name                 string
		rate, ratio, cluster float64
		pairs                int
	}{
		{"rare", 1, 1, 1, 10},
		{"often", 10, 1, 1, 10},
		{"a gain", 4, 2, 1, 10},
		{"a loss", 4, 0.5, 1, 10},
		{"clusters", 10, 1, 4, 10},
		{"few pairs of clusters", 10, 1, 4, 4},
		{"clusters, a gain", 10, 3, 4, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			const runs = 2000
			outside, byChance := 0, 0
			for range runs {
				c := comparisonOf(rng, tt.pairs, tt.rate, tt.ratio, tt.cluster)
				_, low, high := c.ratio()
				if tt.ratio < low || tt.ratio > high {
					outside++
				}
				if c.enough() && c.more(tt.ratio) <= 0.01 {
					byChance++
				}
			}
			if outside > runs*7/100 {
				t.Errorf("%d of %d intervals do not have the true ratio", outside, runs)
			}
			if byChance > runs*2/100 {
				t.Errorf("%d of %d are called more by chance", byChance, runs)
			}
		})
	}
}

// Without events nothing is said.
func TestCountsOfNothing(t *testing.T) {
	nothing := eventsOf(rand.New(rand.NewPCG(1, 1)), 40, 0, 1)
	some := eventsOf(rand.New(rand.NewPCG(1, 1)), 40, 8, 1)
	c := newCounts([]stretches{{sumOf(nothing), sumOf(nothing)}}, nil, usualAmount(nothing))
	if ratio, low, high := c.ratio(); ratio != 1 || low != 0 || !math.IsInf(high, 1) || c.more(1) != 1 || c.enough() {
		t.Errorf("%v in %v..%v, p=%v, enough: %v", ratio, low, high, c.more(1), c.enough())
	}
	four := func(first, second []point) (out []stretches) {
		for range 4 {
			out = append(out, stretches{sumOf(first), sumOf(second)})
		}
		return out
	}
	c = newCounts(four(nothing, some), four(some, some), usualAmount(some))
	if ratio, low, high := c.ratio(); !math.IsInf(ratio, 1) || !(low > 1) || !math.IsInf(high, 1) {
		t.Errorf("from nothing: %v in %v..%v", ratio, low, high)
	}
	c = newCounts(four(some, nothing), four(some, some), usualAmount(some))
	if ratio, low, high := c.ratio(); ratio != 0 || low != 0 || !(high < 1) {
		t.Errorf("to nothing: %v in %v..%v", ratio, low, high)
	}
}

// What a test says is what the interval says.
func TestCountsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		c := comparisonOf(rng, 2+rng.IntN(9), 12*rng.Float64(), math.Exp(rng.NormFloat64()), 1+3*rng.Float64())
		ratio, low, high := c.ratio()
		if !(low <= ratio && ratio <= high) {
			t.Fatalf("%v is not in %v..%v", ratio, low, high)
		}
		if p := c.more(1); math.Abs(p-0.025) > 0.001 && (p < 0.025) != (low > 1) {
			t.Fatalf("p=%v, and %v..%v: %+v", p, low, high, c)
		}
	}
}

// Quantiles of Student's t, from tables.
func TestStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{3: 3.182, 5: 2.571, 10: 2.228, 30: 2.042} {
		if got := quantile(freedom); math.Abs(got-want) > 0.001 {
			t.Errorf("%v degrees of freedom: %v, want %v", freedom, got, want)
		}
		if got := tail(want, freedom); math.Abs(got-0.025) > 1e-4 {
			t.Errorf("%v degrees of freedom: %v beyond %v, want 0.025", freedom, got, want)
		}
	}
}

// A side that was idle before is not in a lull when it is idle again.
func TestLull(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	few := sumOf(eventsOf(rng, 12, 4, 1)) // by chance as if they were frequent
	idle, rare, busy := eventsOf(rng, 40, 0, 1), eventsOf(rng, 200, 1, 1), eventsOf(rng, 200, 100, 1)
	if few.moving == 0 || few.moving >= leastEvents || few.lull(append(idle, idle...)) || sumOf(rare).lull(idle) || sumOf(idle).lull(idle) || !sumOf(busy).lull(idle[:6]) || sumOf(busy).lull(busy) {
		t.Error("a lull is found where there is none, or none where there is one")
	}
}
