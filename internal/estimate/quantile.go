// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"math"
	"slices"
)

const (
	// usualPart is the quantile that stands for the tasks without the few that are unlike
	// them.
	usualPart = 0.95
	// reserve is by how much a time is lengthened: a task that meets its limit is lost.
	reserve = 1.2
)

// Time returns how long to ask for, from how long tasks ran, seconds: the 95th percentile
// and a fifth more. It is 0 without tasks.
func Time(seconds []float64) float64 { return reserve * usual(seconds) }

// Cores returns how many cores to ask for, from the average number that tasks used: the
// 95th percentile, rounded up, where a twentieth of a core more is not another core. It is
// 1 at least.
func Cores(used []float64) int { return max(1, int(math.Ceil(usual(used)-0.05))) }

func usual(values []float64) float64 {
	return Quantile(slices.Sorted(slices.Values(values)), usualPart)
}

// Quantile returns the value below which a part (0 to 1) of sorted values is; 0 without
// values. It interpolates between the values beside it, of which the first is at 0 and the
// last at 1, as spreadsheets, R and NumPy do by default (definition 7 of Hyndman and Fan,
// Sample Quantiles in Statistical Packages, The American Statistician 50, 1996).
func Quantile(sorted []float64, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	below, rest := math.Modf(part * float64(len(sorted)-1))
	at := int(below)
	next := min(at+1, len(sorted)-1)
	return sorted[at] + rest*(sorted[next]-sorted[at])
}
