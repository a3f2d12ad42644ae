// SPDX-License-Identifier: Apache-2.0

package factoring

import (
	"math"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFactors(t *testing.T) {
	for _, tt := range []struct {
		name            string
		mean, deviation float64
		workers         int
		first, later    float64
	}{
		{"μ=10, σ=2, P=8", 10, 2, 8, 0.714286, 0.416667},
		{"μ=10, σ=5, P=32", 10, 5, 32, 1.0 / 3, 0.25},
		{"items that are alike", 10, 0, 8, 1, 0.5},
	} {
		f0, f := First(tt.mean, tt.deviation, tt.workers), Later(tt.mean, tt.deviation, tt.workers)
		if math.Abs(f0-tt.first) > 5e-7 || math.Abs(f-tt.later) > 5e-7 {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, f0, f, tt.first, tt.later)
		}
	}
}

func TestChunk(t *testing.T) {
	for _, tt := range []struct {
		left    int
		factor  float64
		workers int
		want    int
	}{{100, 0.5, 8, 7}, {100, 1, 4, 25}, {3, 0.5, 8, 1}, {1, 1, 1, 1}, {100, 0, 8, 1}, {2, 9, 1, 2}} {
		if got := Chunk(tt.left, tt.factor, tt.workers); got != tt.want {
			t.Errorf("%d left, factor %v, %d workers: %d, want %d", tt.left, tt.factor, tt.workers, got, tt.want)
		}
	}
}

func TestSimulation(t *testing.T) {
	even := Round{Items: 100, Times: [][]float64{{1}, {1}}}
	slow := Round{Items: 100, Times: [][]float64{{4}, {1}}}
	dear := Round{Items: 100, HandOut: 10, Times: [][]float64{{1}, {1}}}
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"equal shares of equal workers", even.Factor(1), 50},
		{"single items", even.Fixed(1), 50},
		{"equal shares, one is slow", slow.Factor(1), 200},
		{"single items, one is slow", slow.Fixed(1), 80},
		{"equal shares with one hand-out each", dear.Factor(1), 60},
		{"single items with one hand-out each", dear.Fixed(1), 550},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestBest(t *testing.T) {
	slow := Round{Items: 1000, HandOut: 0.1, Times: [][]float64{{4}, {1}}}
	if f, seconds := slow.BestFactor(factors(1, 0, 2)); f >= 1 || seconds > 850 {
		t.Errorf("one is slow: factor %v, %v s; want a part, and the 800 s that there are", f, seconds)
	}
	if n, seconds := slow.BestFixed(); n > 16 || seconds > 850 {
		t.Errorf("one is slow: pieces of %d, %v s", n, seconds)
	}
	dear := Round{Items: 1000, HandOut: 50, Times: [][]float64{{1}, {1}}}
	if f, _ := dear.BestFactor(factors(1, 0, 2)); f != 1 {
		t.Errorf("dear hand-outs: factor %v, want all at once", f)
	}
	if n, _ := dear.BestFixed(); n != 500 {
		t.Errorf("dear hand-outs: pieces of %d, want equal shares", n)
	}
}

// No factor beats the bound that there is: all the work at the workers' speeds.
func TestSimulationIsBounded(t *testing.T) {
	r := Round{Items: 777, HandOut: 0, Times: [][]float64{{1, 3, 2}, {5}, {0.5, 0.5, 4}}}
	bound := 777 / (1/2.0 + 1/5.0 + 1/(5.0/3))
	for _, f := range factors(2, 1, 3) {
		if got := r.Factor(f); got < bound*0.98 {
			t.Errorf("factor %v: %v s, less than %v", f, got, bound)
		}
	}
}
