// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// confidence of the intervals given with medians.
const confidence = 0.95

// boundedLog returns the logarithm of a ratio; of 0 and infinity one that means can be
// made of.
func boundedLog(ratio float64) float64 { return max(-boundedBy, min(boundedBy, math.Log(ratio))) }

// ratioOf returns the ratio of a logarithm: 0 or infinite where such a one is in the mean,
// which is then far beyond what is measured of anything.
func ratioOf(log float64) float64 {
	switch {
	case log > boundedBy/3:
		return math.Inf(1)
	case log < -boundedBy/3:
		return 0
	}
	return math.Exp(log)
}

const boundedBy = 300.0

// tail returns the probability that Student's t exceeds a value.
func tail(t, freedom float64) float64 { return stats.TDist{V: freedom}.CDF(-t) }

// quantile returns the two-sided 95 % quantile of Student's t.
func quantile(freedom float64) float64 {
	return stats.InvCDF(stats.TDist{V: freedom})((1 + confidence) / 2)
}
