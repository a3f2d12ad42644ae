// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"slices"
)

// Median returns the median of the values, NaN for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// MedianInterval returns between which values the median lies of what the values are
// samples of, with 93 % at least, whatever its distribution (the sign test); for fewer than
// five of them it is anywhere.
func MedianInterval(values []float64) (low, high float64) {
	sorted, n := slices.Sorted(slices.Values(values)), len(values)
	low, high = math.Inf(-1), math.Inf(1)
	outside := 0.0 // how likely so many or fewer of n are on one side of the median
	for i := range n / 2 {
		if outside += float64(binomial(n, i)) / math.Exp2(float64(n)); 2*outside > 0.07 {
			break
		}
		low, high = sorted[i], sorted[n-1-i]
	}
	return low, high
}

// binomial is n over k, of small numbers.
func binomial(n, k int) int {
	of := 1
	for i := range k {
		of = of * (n - i) / (i + 1)
	}
	return of
}

// Quantile returns the value that a share of the values, 0 to 1, does not
// exceed, NaN for none.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// Ratios returns a[i]/b[i]: two series measured in turns are compared pair by
// pair, so that a machine that gets slower by and by does not count.
func Ratios(a, b []float64) []float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

// GeometricMean returns the geometric mean of positive values, NaN for none.
func GeometricMean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
