// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"math"
	"slices"
	"time"
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
)

// findings are what the pairs of a trial in turns say together.
type findings struct {
	pairs     int
	gain      float64 // typical one
	better    float64 // probability of such gains by chance
	worse     float64 // of such losses
	falseHope float64 // of gains this small, if they suffice
	calm      bool    // the application itself varies less
	// clear is how many of the latest pairs are clear each by itself, all in the
	// same direction, as many upwards as downwards; clearGain is their typical gain.
	// Those before them may be of an application that was still starting.
	clear     int
	clearGain float64
}

// findings sums the pairs up; minGain is the least gain worth keeping.
func (t *turns) findings(minGain float64) findings {
	f := findings{pairs: len(t.compared), clear: t.clear()}
	var gains, losses []float64
	for _, one := range t.compared {
		gains, losses = append(gains, one.gain), append(losses, 1/one.gain)
	}
	f.gain, f.clearGain = geometricMedian(gains), geometricMedian(gains[f.pairs-f.clear:])
	f.calm = math.Abs(math.Log(f.gain)) > calmRatio*math.Log(geometricMedian(t.within))
	f.better, f.worse = signedRank(gains, 1), signedRank(losses, 1)
	f.falseHope = signedRank(losses, 1/(1+minGain))
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

// proveGain reports whether the findings are a gain, at the given level.
func (f findings) proveGain(alpha float64) bool {
	clear := f.clear >= fewClear && f.clearGain >= plainGain || f.clear >= moreClear && f.clearGain >= largeGain ||
		f.clear >= manyClear && f.clearGain >= fairGain
	return f.gain > 1 && (clear && f.calm || f.pairs >= manyPairs && f.better <= alpha)
}

// proveLoss reports whether the findings are a loss, at the given level.
func (f findings) proveLoss(alpha float64) bool {
	clear := f.clear >= fewClear && f.clearGain <= 1/largeGain || f.clear >= moreClear && f.clearGain <= 1/modestGain
	enough := f.calm && f.pairs >= leastPairs || f.pairs >= manyPairs
	return f.gain < 1 && (clear && f.calm || enough && f.worse <= alpha)
}

// likelyLoss reports whether the findings at the end of the time are a loss worth
// undoing, with less certainty than a proof takes.
func (f findings) likelyLoss(minGain, alpha float64) bool {
	return f.pairs >= leastPairs && f.gain < 1/(1+minGain) && f.worse <= 5*alpha
}

// look looks at the samples of the present turn, for which the time is over or not,
// and returns the comparison of all turns once there is one to go by.
func (t *turns) look(o Objective, now time.Duration, over bool) (Ruling, *Judgement) {
	points := o.since(t.from)
	if len(points) < t.want() {
		if over {
			return t.giveUp(len(points)), nil
		}
		return Ruling{}, nil
	}
	next := turn{t.on, points}
	if !o.Lower && (t.silent(next.beginning(t.half)) || t.silent(next.end(t.half))) {
		t.from = now
		return Ruling{}, nil
	}
	t.add(next, o.Lower)
	return t.decide(o, now)
}

// giveUp ends a trial in which nothing can be measured any more. What was kept stays,
// for the reason that it was kept for.
func (t *turns) giveUp(samples int) Ruling {
	if t.kept {
		return Ruling{Do: KeepIt}
	}
	return Ruling{DropIt, tooFew(samples)}
}

// tooFew says that an objective has too few samples to judge by.
func tooFew(samples int) string {
	return fmt.Sprintf("not measurable: only %d samples of the objective in %v", samples, JudgeTimeout)
}

// decide looks at the pairs compared so far, as many upwards as downwards,
// and decides or changes sides. Once the time is over it decides at each turn,
// whatever the tunlet would like to wait for.
func (t *turns) decide(o Objective, now time.Duration) (Ruling, *Judgement) {
	n := len(t.compared)
	over := now >= t.deadline
	if n == 0 || !over && (n%2 == 1 || n < t.hold) {
		return Ruling{Do: ChangeSides}, nil
	}
	if n%2 == 1 { // the time is over: without the first one there are as many of both
		t.compared = t.compared[1:]
	}
	f := t.findings(o.MinGain)
	j := t.judgement(f, o.Lower)
	if t.kept {
		return f.decideAgain(o.MinGain, over, j.Text()), j
	}
	return f.decide(o.MinGain, over, j.Text()), j
}

// decide is the verdict on a change that has been measured as text says.
func (f findings) decide(minGain float64, over bool, text string) Ruling {
	switch alpha := alphaOf(over); {
	case f.proveLoss(alpha):
		return Ruling{UndoIt, "measured loss: " + text}
	case f.gain >= 1+minGain && f.proveGain(alpha):
		return Ruling{Do: AskToKeep}
	case over || f.pairs >= manyPairs && f.falseHope <= significance/10:
		return Ruling{Do: AskToUndo}
	}
	return Ruling{Do: ChangeSides}
}

// decideAgain is the verdict on a change that was kept before. It goes only if it
// is shown to do harm: the trouble that it cured may just not be there now.
func (f findings) decideAgain(minGain float64, over bool, text string) Ruling {
	switch alpha := alphaOf(over); {
	case f.proveLoss(alpha) || over && f.likelyLoss(minGain, alpha):
		return Ruling{UndoIt, "regressed after it was kept: " + text}
	case over && f.gain < 1/(1+minGain):
		return Ruling{KeepIt, "compared again, no certain loss: " + text}
	case over || f.proveGain(alpha) || f.gain >= 1 && f.pairs >= leastPairs:
		return Ruling{KeepIt, "compared again, no loss: " + text}
	}
	return Ruling{Do: ChangeSides}
}

// alphaOf returns the level of a look at a trial in turns.
func alphaOf(last bool) float64 {
	if last {
		return significance
	}
	return significance / 2
}

// judgement returns the findings for people. A few pairs are clear by their
// samples.
func (t *turns) judgement(f findings, lower bool) *Judgement {
	j := compare(t.off, t.in, lower)
	if f.pairs >= leastPairs {
		j.P = min(1, 2*min(f.better, f.worse))
	}
	j.Gain, j.Turns = f.gain, f.pairs
	return &j
}
