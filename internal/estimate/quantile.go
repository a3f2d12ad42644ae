// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const (
	// usual is the quantile that stands for the tasks without the few that are unlike them.
	usual = 0.95
	// reserve is by how much a time is lengthened: a task that meets its limit is lost.
	reserve = 1.2
)

// Time returns how long to ask for, from how long tasks ran, seconds: the 95th percentile
// and a fifth more. It is 0 without tasks.
func Time(seconds []float64) float64 { return reserve * quantile(seconds) }

// Cores returns how many cores to ask for, from the average number that tasks used: the
// 95th percentile, rounded up, where a twentieth of a core more is not another core. It is
// 1 at least.
func Cores(used []float64) int { return max(1, int(math.Ceil(quantile(used)-0.05))) }

// quantile is the usual one, 0 without values: linear in the empirical distribution, which
// is definition 4 of Hyndman and Fan (The American Statistician 50, 1996). It is a twentieth
// of the way to the next value below definition 7, which numpy and R take: far less than
// the reserve.
func quantile(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return stat.Quantile(usual, stat.LinInterp, sorted, nil)
}
