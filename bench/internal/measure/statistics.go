// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
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
	below := distuv.Binomial{N: float64(n), P: 0.5} // how many of n are on one side of the median
	for i := range n / 2 {
		if 2*below.CDF(float64(i)) > 0.07 {
			break
		}
		low, high = sorted[i], sorted[n-1-i]
	}
	return low, high
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
