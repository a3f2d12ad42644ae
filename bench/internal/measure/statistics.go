// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"slices"
)

// Median returns the median of the values, NaN for none and where one of them is NaN.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 || math.IsNaN(sorted[0]) { // NaN is sorted before all others
		return math.NaN()
	}
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
// exceed, NaN for none and where one of them is NaN.
func Quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 || math.IsNaN(sorted[0]) {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// Ratios returns a[i]/b[i]: two series measured in turns are compared pair by
// pair, so that a machine that gets slower by and by does not count. A pair of which one
// was not measured, NaN, is left out.
func Ratios(a, b []float64) []float64 {
	return pairs(a, b, func(a, b float64) float64 { return a / b })
}

// Differences returns a[i]-b[i], of the same pairs as Ratios.
func Differences(a, b []float64) []float64 {
	return pairs(a, b, func(a, b float64) float64 { return a - b })
}

func pairs(a, b []float64, compare func(a, b float64) float64) (compared []float64) {
	for i := range min(len(a), len(b)) {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			compared = append(compared, compare(a[i], b[i]))
		}
	}
	return compared
}

// Known returns the values that were measured: those that are not NaN.
func Known(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// GeometricMean returns the geometric mean of positive values, NaN for none.
func GeometricMean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
