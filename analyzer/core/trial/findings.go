// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"
	"slices"
)

const (
	// leastPairs is how many comparisons it takes at least to prove a modest loss:
	// 8 of one sign are chance in 1 of 256 cases. A modest gain takes manyPairs,
	// as does a loss that is not much more than the application varies by itself:
	// fewer may keep step with something periodic in it.
	leastPairs, manyPairs = 8, 16
	// fewClear is how many pairs that are clear each by itself prove a gain of
	// plainGain or a loss of largeGain, moreClear one of largeGain or a loss of
	// modestGain, and manyClear one of fairGain. What the application does by itself
	// would have to come in time with each change of sides. A loss takes less: the
	// application suffers.
	fewClear, moreClear, manyClear = 2, 4, 8
	// calmRatio is how many times more than by itself the application has to
	// vary with the change, in logarithms, for few pairs to prove something.
	calmRatio = 2.5
	// earlyLooks corrects the level, where not ranks of many pairs decide, for the looks
	// that there are before them.
	earlyLooks = 5.0
	// leastPart of the time has to be over before it is foreseen what the rest will show.
	leastPart = 0.25
	// doubt is the level at which a gain is given up after a long trial.
	doubt = 0.05
)

// findings are what pairs of a trial in turns say together.
type findings struct {
	pairs     int
	gain      float64 // typical one
	low, high float64 // its 95 % confidence interval
	better    float64 // probability of such a gain by chance
	worse     float64 // of such a loss
	falseHope float64 // of a gain this small, if it suffices
	calm      bool    // the application itself varies less
	// clear: these are the latest pairs, few, clear each by itself, all in the same
	// direction, as many upwards as downwards, and prove something. Those before them
	// may be of an application that was still starting.
	clear bool
	// counted is of events that are counted; nil: samples were ranked.
	counted *counts
}

// findings sums the pairs up that tell most: the latest clear ones, if they prove
// something, else all. minGain is the least gain worth keeping.
func (t *turns) findings(minGain float64, lower bool) findings {
	if t.counting() {
		return t.count(minGain, lower)
	}
	if n := t.clear(); n >= fewClear {
		f := t.rank(t.compared[len(t.compared)-n:], minGain, lower)
		if f.clear = f.proveByFew(); f.clear {
			return f
		}
	}
	return t.rank(t.compared, minGain, lower)
}

// rank sums pairs up by the ranks of their gains. The interval has what is typical of their
// means, too.
func (t *turns) rank(pairs []pair, minGain float64, lower bool) findings {
	f := findings{pairs: len(pairs)}
	var gains, losses, means []float64
	for _, one := range pairs {
		gains, losses = append(gains, one.gain), append(losses, 1/one.gain)
		if one.sums.first.seconds > 0 && one.sums.second.seconds > 0 {
			means = append(means, gain(one.sums.first.rate(), one.sums.second.rate(), lower))
		}
	}
	if f.pairs < leastPairs {
		f.gain, f.low, f.high, f.better = typicalOfFew(gains, t.within)
		f.worse, f.falseHope = 1-f.better, 1
	} else {
		f.gain, f.low, f.high = typicalOf(gains)
		f.better, f.worse = signedRank(gains, 1), signedRank(losses, 1)
		f.falseHope = signedRank(losses, 1/(1+minGain))
	}
	if len(means) > 0 { // what is typical of samples does not see what happens seldom, as long pauses
		mean, _, _ := typicalOf(means)
		f.low, f.high = min(f.low, mean), max(f.high, mean)
	}
	f.calm = math.Abs(math.Log(f.gain)) > calmRatio*math.Log(geometricMedian(t.within))
	return f
}

// count sums all pairs up by their events.
func (t *turns) count(minGain float64, lower bool) findings {
	var pairs []stretches
	for _, one := range t.compared {
		pairs = append(pairs, one.sums)
	}
	return newCounts(pairs, t.same, usualAmount(t.seen)).findings(len(pairs), minGain, lower)
}

// findings returns what the counts say.
func (c counts) findings(pairs int, minGain float64, lower bool) findings {
	f := findings{pairs: pairs, counted: &c, better: c.more(1)}
	f.gain, f.low, f.high = c.ratio()
	f.worse, f.falseHope = 1-f.better, 1-c.more(1+minGain)
	if lower {
		f.gain, f.low, f.high = 1/f.gain, 1/f.high, 1/f.low
		f.better, f.worse, f.falseHope = f.worse, f.better, c.more(1/(1+minGain))
	}
	return f
}

// clear counts the latest pairs that are clear each by itself, all in the same
// direction. It is even: a drift favours neither side.
func (t *turns) clear() (n int) {
	for _, one := range slices.Backward(t.compared) {
		if !one.clear || one.gain > 1 != (t.compared[len(t.compared)-1].gain > 1) {
			break
		}
		n++
	}
	return n - n%2
}

// proveByFew reports whether pairs that are clear each by itself are a gain, or a loss.
func (f findings) proveByFew() bool {
	gain := f.pairs >= manyClear && f.gain >= fairGain || f.pairs >= moreClear && f.gain >= largeGain || f.gain >= plainGain
	loss := f.pairs >= moreClear && f.gain <= 1/modestGain || f.gain <= 1/largeGain
	return f.calm && (gain && f.low > 1 || loss && f.high < 1)
}

// proveGain reports whether the findings are a gain, at the given level. At the end fewer
// pairs do, since then there are no more: of samples that are far between.
func (f findings) proveGain(alpha float64, over bool) bool {
	switch {
	case f.low <= 1 || f.gain <= 1:
		return false
	case f.counted != nil:
		return f.counted.enough() && f.better <= alpha/looks(over)
	}
	return f.clear || f.proveLarge(f.better, alpha) || (f.pairs >= manyPairs || over && f.calm && f.pairs >= leastPairs) && f.better <= alpha
}

// proveLoss reports whether the findings are a loss, at the given level.
func (f findings) proveLoss(alpha float64) bool {
	switch {
	case f.high >= 1 || f.gain >= 1:
		return false
	case f.counted != nil:
		return f.counted.enough() && f.worse <= alpha/earlyLooks
	}
	return f.clear || f.proveLarge(f.worse, alpha) || (f.calm && f.pairs >= leastPairs || f.pairs >= manyPairs) && f.worse <= alpha
}

// looks corrects the level of counted events for the number of looks, less at the last one:
// nothing can follow from it twice.
func looks(over bool) float64 {
	if over {
		return earlyLooks / 2
	}
	return earlyLooks
}

// proveLarge reports whether pairs that are not clear each by itself are a gain, or a loss, so
// large that it takes few of them; p is the probability of it by chance.
func (f findings) proveLarge(p, alpha float64) bool {
	if f.pairs < leastPairs {
		alpha /= earlyLooks
	}
	return f.calm && f.pairs >= moreClear && p <= alpha && max(f.gain, 1/f.gain) >= plainGain
}

// likelyLoss reports whether the findings at the end of the time are a loss worth
// undoing, with less certainty than a proof takes.
func (f findings) likelyLoss(minGain, alpha float64) bool {
	return f.pairs >= leastPairs && f.gain < 1/(1+minGain) && f.worse <= 5*alpha && f.high < 1
}

// few reports whether there were too few events to say anything.
func (f findings) few() bool { return f.counted != nil && !f.counted.enough() }

// hopeless reports whether a gain cannot become visible any more: neither the one that
// was promised, nor the one that seems to be there. part of the time is over.
func (f findings) hopeless(promised, minGain, part float64) bool {
	if f.counted == nil || part < leastPart || f.pairs < steadyPairs && part < 2*leastPart {
		return false
	}
	seems := f.gain
	if f.few() {
		seems = 1
	}
	return f.counted.visible(1/part) > max(promised, seems, 1+minGain)
}

// unpromising reports whether many pairs show nothing that would be worth keeping, though
// they do not show that there is none either: to compare costs the application as well.
func (f findings) unpromising(minGain float64) bool {
	return f.pairs >= 2*manyPairs && f.gain < 1+minGain/2
}

// doubts says why nothing is proven.
func (f findings) doubts() string {
	if f.low > 1 && !f.calm && f.counted == nil {
		return "not proven, since it varies as much by itself: "
	}
	return "not proven: "
}

// useless reports whether the findings show that there is no gain worth keeping. What
// has taken many pairs needs less certainty: to compare costs the application as well.
func (f findings) useless(minGain float64) bool {
	switch {
	case f.few() || f.gain >= 1+minGain:
		return false
	case f.pairs >= 2*manyPairs:
		return f.falseHope <= doubt
	}
	return f.pairs >= manyPairs && f.falseHope <= significance/10
}

// judgement returns the findings for people, with the mean rates without and with the
// change.
func (f findings) judgement(off, on sum) *Judgement {
	level := func(s sum) Estimate {
		return Estimate{Median: s.rate(), Low: math.Inf(-1), High: math.Inf(1), Samples: s.windows}
	}
	j := &Judgement{
		Before: level(off), After: level(on), Gain: f.gain, Low: f.low, High: f.high,
		P: min(1, 2*min(f.better, f.worse)), Turns: f.pairs, Few: f.few(),
	}
	if c := f.counted; c != nil {
		j.Events, j.Windows = c.moving(), c.windows()
	}
	return j
}
