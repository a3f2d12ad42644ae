// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"math"
	"slices"
)

// typicalGain returns the median of the gains from every value before to every
// value after (the Hodges-Lehmann estimator of the shift between logarithms).
// It bears outliers, and two kinds of values that both samples have: where a
// median would jump from one kind to the other, most pairs are of the same kind.
func typicalGain(before, after []float64, lower bool) float64 {
	gains := make([]float64, 0, len(before)*len(after))
	for _, b := range before {
		for _, a := range after {
			gains = append(gains, gain(b, a, lower))
		}
	}
	return geometricMedian(gains)
}

// geometricMedian returns the median of ratios; of two in the middle, their
// geometric mean. 1 without any.
func geometricMedian(ratios []float64) float64 {
	n := len(ratios)
	if n == 0 {
		return 1
	}
	ratios = slices.Sorted(slices.Values(ratios))
	low, high := ratios[(n-1)/2], ratios[n/2]
	switch {
	case low == high: // also where both are 0 or infinite
		return low
	case low == 0 && math.IsInf(high, 1): // as far down as up
		return 1
	}
	return math.Exp((math.Log(low) + math.Log(high)) / 2)
}

// typicalOf returns the estimate of the signed rank test, and its 95 % confidence
// interval: the median and two others of the means of all pairs of logarithms, each with
// itself too (Hodges and Lehmann 1963; the normal approximation of the quantile is exact
// to a rank from leastPairs gains on). Only the last maxRanked gains count.
func typicalOf(gains []float64) (typical, low, high float64) {
	gains = gains[max(0, len(gains)-maxRanked):]
	var means []float64
	for i, a := range gains {
		for _, b := range gains[i:] {
			means = append(means, (boundedLog(a)+boundedLog(b))/2)
		}
	}
	slices.Sort(means)
	n, all := float64(len(gains)), len(means)
	if all == 0 {
		return 1, 0, math.Inf(1)
	}
	typical = ratioOf((means[(all-1)/2] + means[all/2]) / 2)
	k := int(n*(n+1)/4 - quantile95*math.Sqrt(n*(n+1)*(2*n+1)/24) - 0.5)
	if k < 0 {
		return typical, 0, math.Inf(1)
	}
	return typical, ratioOf(means[k]), ratioOf(means[all-1-k])
}

// typicalOfFew returns the same of too few gains to rank: by Student's t, with the
// deviation of the gains or that of within, which is how far the application differs by
// itself, whichever is larger. However often that was seen, it was in the time of these few
// gains, so that their number says how much is known. p is the one-sided probability of no
// gain.
func typicalOfFew(gains, within []float64) (typical, low, high, p float64) {
	typical, _, _ = typicalOf(gains)
	middle := boundedLog(typical)
	var own, apart []float64
	for _, g := range gains {
		apart = append(apart, math.Exp(math.Abs(boundedLog(g)-middle)))
	}
	for _, w := range within {
		own = append(own, math.Exp(math.Abs(boundedLog(w))))
	}
	// Of normal deviations, two thirds are below the deviation.
	deviation := max(math.Log(geometricMedian(own)), math.Log(geometricMedian(apart))) / 0.6745
	deviation = max(deviation, finest) / math.Sqrt(float64(len(gains)))
	freedom := float64(max(2, len(gains)-1)) // halves of the turns of two gains say something, too
	half := quantile(freedom) * deviation
	return typical, ratioOf(middle - half), ratioOf(middle + half), tail(middle/deviation, freedom)
}

// finest is the least deviation, of a logarithm, that few gains are believed to have: calm
// programs that have a machine for themselves differ by 2 % in the median from one second to
// the next (of fourteen that bench/verdicts ran, those that varied least).
const finest = 0.03

// maxRanked bounds the values of a signed rank test.
const maxRanked = 64

// signedRank returns the probability of logarithms that speak so clearly for a
// gain above least, if there is none: the one-sided Wilcoxon signed rank test,
// exact also with ties. It assumes no distribution, only that without a gain a
// comparison falls as often, and as far, to one side as to the other. Only the
// last maxRanked gains count.
func signedRank(gains []float64, least float64) float64 {
	gains = gains[max(0, len(gains)-maxRanked):]
	ranks, positive := doubledRanks(gains, least)
	return atLeast(ranks, positive)
}

// doubledRanks ranks the distances from least, twice each rank so that those of
// ties are whole numbers, and sums up the ranks of the gains above it. Gains
// that are equal to least say nothing and are left out.
func doubledRanks(gains []float64, least float64) (ranks []int, positive int) {
	var distances []float64
	for _, g := range gains {
		if g != least {
			distances = append(distances, boundedLog(g/least))
		}
	}
	slices.SortFunc(distances, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	for i := 0; i < len(distances); {
		j := i + 1
		for j < len(distances) && math.Abs(distances[j]) == math.Abs(distances[i]) {
			j++
		}
		for k := i; k < j; k++ {
			rank := i + 1 + j // twice the mean of i+1..j
			ranks = append(ranks, rank)
			if distances[k] > 0 {
				positive += rank
			}
		}
		i = j
	}
	return ranks, positive
}

// atLeast returns the share of all ways to give the ranks signs in which the
// sum of the positive ones is at least so much.
func atLeast(ranks []int, sum int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	share := make([]float64, total+1) // of the ways to reach each sum
	share[0] = 1
	reached := 0
	for _, r := range ranks {
		reached += r
		for s := reached; s >= 0; s-- {
			share[s] /= 2
			if s >= r {
				share[s] += share[s-r] / 2
			}
		}
	}
	p := 0.0
	for s := sum; s <= total; s++ {
		p += share[s]
	}
	return min(1, p)
}
