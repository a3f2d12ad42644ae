// SPDX-License-Identifier: Apache-2.0

package factoring

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/attune-hpc/attune/tunlets/kit/masterworker"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// drawnBits is the binary logarithm of how many times are drawn for a worker.
	drawnBits = 6
	// leastItems is what must be known of a worker.
	leastItems = 8
	// maxWorkers bounds the workers that are simulated.
	maxWorkers = 4096
)

// sums are the items of one worker: how many, their seconds, and how many of each
// bit width in nanoseconds.
type sums struct {
	count, seconds float64
	widths         [65]float64
}

// items are those of each worker.
type items map[masterworker.Worker]*sums

// add takes the items of a worker in an interval.
func (t items) add(w masterworker.Worker, a sdk.Aggregate) {
	s := t[w]
	if s == nil && len(t) >= maxWorkers {
		return
	}
	if s == nil {
		s = &sums{}
		t[w] = s
	}
	s.count += float64(a.Count)
	s.seconds += float64(a.Sum) * 1e-9
	for width, n := range a.Histogram {
		s.widths[min(width, len(s.widths)-1)] += float64(n)
	}
}

// times are item times of each worker of which enough is known, in a fixed order.
func (t items) times() (out [][]float64) {
	workers := slices.SortedFunc(maps.Keys(t), func(a, b masterworker.Worker) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.Thread, b.Thread))
	})
	for _, w := range workers {
		if t[w].count >= leastItems {
			out = append(out, t[w].draw())
		}
	}
	return out
}

// draw makes times that have the mean of what was measured, exactly, and its
// distribution as far as bit widths tell: quantiles, in an order that spreads them
// evenly.
func (s *sums) draw() []float64 {
	const n = 1 << drawnBits
	out := make([]float64, n)
	sum := 0.0
	for i := range out {
		quantile := (float64(bits.Reverse8(uint8(i))>>(8-drawnBits)) + 0.5) / n
		out[i] = s.width(quantile)
		sum += out[i]
	}
	for i := range out {
		out[i] *= s.seconds / s.count * n / sum
	}
	return out
}

// width is a time of the bit width at a quantile, in any unit, more than nothing.
func (s *sums) width(quantile float64) float64 {
	below, last := 0.0, 0
	for width, n := range s.widths {
		if n == 0 {
			continue
		}
		below, last = below+n, width
		if below >= quantile*s.count {
			break
		}
	}
	return math.Exp2(float64(last))
}

// moments are mean and standard deviation of all items.
func moments(times [][]float64) (mean, deviation float64) {
	var n, sum, squares float64
	for _, t := range slices.Concat(times...) {
		n++
		sum += t
		squares += t * t
	}
	if n == 0 {
		return 0, 0
	}
	mean = sum / n
	return mean, math.Sqrt(max(0, squares/n-mean*mean))
}
