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
