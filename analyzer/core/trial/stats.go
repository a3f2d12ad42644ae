// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Judgement compares an objective before and after a change.
type Judgement struct {
	// Before and After are the objective without and with the change. Their medians
	// have the ratio Gain: of one comparison they are those of the samples; of turns
	// the two levels that fit the pairs of neighbours best (counted events: their
	// mean rates).
	Before, After Estimate
	// Gain is how many times better it is: above 1 better, below 1 worse, whichever
	// direction the objective has; +Inf from no progress at all to some.
	Gain float64
	// Low and High are the 95 % confidence interval of Gain, which it lies in, and what the
	// means say as well; 0 and +Inf where it cannot be told.
	Low, High float64
	// P is the probability of so large a difference by chance, two-sided, by the test
	// that decides: Mann-Whitney U of one comparison; of turns Wilcoxon's signed rank
	// test over their pairs, of a few of them Student's t; of counted events the score.
	// 1 if it cannot be told.
	P float64
	// Turns is how many pairs of turns were compared. 0: before and after were compared
	// once.
	Turns int
	// Events is how many of Windows samples saw something happen, if that is counted;
	// else both are 0.
	Events, Windows int
	// Few says that so few events were counted that nothing can be said: Gain says
	// nothing.
	Few bool
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
	j.Low, j.High = ratioWithin(b, a, lowerIsBetter)
	if len(before) > 0 && len(after) > 0 {
		j.P = pValue(b, a)
	}
	return j
}

// loses reports whether it is a loss of more than the least gain, by significance.
func (j *Judgement) loses(minGain float64) bool {
	return !j.Few && j.Gain <= 1/(1+minGain) && j.P <= significance
}

// ratioWithin returns the interval of the gain that those of the medians leave, of sorted
// samples. It is wide: for a ratio to be off as far, both have to be off in opposite
// directions. So the extremes do where there are too few values for an interval.
func ratioWithin(before, after *benchmath.Sample, lower bool) (low, high float64) {
	if min(len(before.Values), len(after.Values)) < leastJoined {
		return 0, math.Inf(1)
	}
	b, a := within(before), within(after)
	if lower {
		return gain(b[0], a[1], true), gain(b[1], a[0], true)
	}
	return gain(b[1], a[0], false), gain(b[0], a[1], false)
}

// batchesWithin returns the interval of a gain that batches of both sides leave, as many
// as the root of the samples: how far their means differ says how far the application varies
// for longer than from sample to sample (the method of batch means, with Student's t). Of a
// side on which nothing happened they say nothing.
func batchesWithin(before, after []float64, typical float64) (low, high float64) {
	if min(len(before), len(after)) < leastJoined {
		return 0, math.Inf(1)
	}
	var square, freedom float64 // of the relative error
	for _, side := range [][]float64{before, after} {
		whole, batches := stat.Mean(side, nil), int(math.Round(math.Sqrt(float64(len(side)))))
		if whole == 0 {
			return typical, typical
		}
		var squares float64
		for i := range batches {
			apart := stat.Mean(side[i*len(side)/batches:(i+1)*len(side)/batches], nil)/whole - 1
			squares += apart * apart
		}
		square += squares / float64(batches-1) / float64(batches)
		freedom += float64(batches - 1)
	}
	half := quantile(freedom) * math.Sqrt(square)
	return ratioOf(boundedLog(typical) - half), ratioOf(boundedLog(typical) + half)
}

// within returns the interval of the median, or the extremes of few values.
func within(s *benchmath.Sample) [2]float64 {
	e := estimate(s)
	return [2]float64{max(e.Low, s.Values[0]), min(e.High, s.Values[len(s.Values)-1])}
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

// gain returns how many times better after is than before, of values that
// [attunev1.CheckObjective] lets pass. From 0 any improvement is infinite.
func gain(before, after float64, lowerIsBetter bool) float64 {
	if lowerIsBetter {
		before, after = after, before
	}
	switch before {
	case after:
		return 1
	case 0:
		return math.Inf(1)
	}
	return after / before
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
	if j.Few {
		return fmt.Sprintf("too few events to compare (%d in %d windows)", j.Events, j.Windows)
	}
	gain := fmt.Sprintf("%.3gx [%.3g..%.3g]", j.Gain, j.Low, j.High)
	switch {
	case j.Before.Samples == 0 || j.After.Samples == 0:
		return fmt.Sprintf("gain unknown, n=%d+%d", j.Before.Samples, j.After.Samples)
	case math.IsInf(j.Gain, 1):
		gain = fmt.Sprintf("at least %.3gx", j.Low)
	}
	if j.Turns > 0 {
		gain += fmt.Sprintf(" in %d turns", j.Turns)
	}
	return fmt.Sprintf("%s, %.4g before, %.4g after, p=%.2g, n=%d+%d",
		gain, j.Before.Median, j.After.Median, j.P, j.Before.Samples, j.After.Samples)
}

// shows reports whether the comparison shows a gain, or a loss.
func (j *Judgement) shows() (gain, loss bool) { return !j.Few && j.Low > 1, !j.Few && j.High < 1 }
