// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// confidence of the intervals given with medians.
const confidence = 0.95

// Judgement compares an objective before and after a change.
type Judgement struct {
	// Before summarises the baseline.
	Before Estimate
	// After summarises the samples after the change.
	After Estimate
	// Gain is how many times better the median is: above 1 better, below 1
	// worse, whichever direction the objective has; +Inf from no progress at
	// all to some.
	Gain float64
	// P is the probability of so large a difference by chance, two-sided
	// (Mann-Whitney U; of a trial in many turns Wilcoxon's signed rank test
	// over them); 1 if it cannot be told.
	P float64
	// Turns is how often the sides were changed to compare; then Gain is the
	// typical one of them. 0: before and after were compared once.
	Turns int
}

// Estimate is a robust summary of samples.
type Estimate struct {
	// Median is the median; 0 without samples.
	Median float64
	// Low and High are the ends of the nonparametric 95 % confidence interval
	// of the median; infinite with fewer than 6 samples.
	Low, High float64
	// Samples counts them.
	Samples int
}

// compare judges after against before. It does not modify its arguments.
func compare(before, after []float64, lowerIsBetter bool) Judgement {
	b, a := sampleOf(before), sampleOf(after)
	j := Judgement{Before: estimate(b), After: estimate(a), P: 1}
	j.Gain = gain(j.Before.Median, j.After.Median, lowerIsBetter)
	if len(before) > 0 && len(after) > 0 {
		j.P = pValue(b, a)
	}
	return j
}

// pValue returns the two-sided p of the Mann-Whitney U test. With ties the
// exact distribution is not symmetric, and the library always takes its lower
// tail: that is the right one only when the sample that wins fewer pairs comes
// first (measured: 0.15 instead of 0.28 the other way round).
func pValue(a, b *benchmath.Sample) float64 {
	if wins(a.Values, b.Values) > wins(b.Values, a.Values) {
		a, b = b, a
	}
	return min(1, benchmath.AssumeNothing.Compare(a, b).P)
}

// wins counts the pairs in which a is greater than b.
func wins(a, b []float64) int {
	n := 0
	for _, x := range a {
		for _, y := range b {
			if x > y {
				n++
			}
		}
	}
	return n
}

// gain returns how many times better after is than before. Where a ratio makes
// no sense (zero, or a sign), any improvement is infinite and any loss is 0.
func gain(before, after float64, lowerIsBetter bool) float64 {
	if lowerIsBetter {
		before, after = after, before
	}
	switch {
	case before == after:
		return 1
	case before > 0 && after >= 0:
		return after / before
	case after > before:
		return math.Inf(1)
	}
	return 0
}

// sampleOf returns a sorted copy of values as a sample.
func sampleOf(values []float64) *benchmath.Sample {
	t := benchmath.DefaultThresholds
	return benchmath.NewSample(slices.Clone(values), &t)
}

// estimate summarises s.
func estimate(s *benchmath.Sample) Estimate {
	if len(s.Values) == 0 {
		return Estimate{Low: math.Inf(-1), High: math.Inf(1)}
	}
	sum := benchmath.AssumeNothing.Summary(s, confidence)
	return Estimate{Median: sum.Center, Low: sum.Lo, High: sum.Hi, Samples: len(s.Values)}
}

// Proto returns e as the tunlets see it.
func (e Estimate) Proto() *attunev1.Estimate {
	return &attunev1.Estimate{Median: e.Median, Low: e.Low, High: e.High, Samples: uint32(e.Samples)}
}

// Text returns the comparison in a line.
func (j *Judgement) Text() string {
	gain := fmt.Sprintf("%.3gx", j.Gain)
	switch {
	case j.Before.Samples == 0:
		gain = "gain unknown"
	case math.IsInf(j.Gain, 1):
		gain = "from no progress to some"
	}
	if j.Turns > 0 {
		gain += fmt.Sprintf(" in %d turns", j.Turns)
	}
	return fmt.Sprintf("%s, median %.4g before, %.4g after, p=%.2g, n=%d+%d",
		gain, j.Before.Median, j.After.Median, j.P, j.Before.Samples, j.After.Samples)
}
