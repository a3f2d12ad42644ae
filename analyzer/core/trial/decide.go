// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"math"
	"time"
)

// look looks at the samples of the present turn, for which the time is over or not,
// and returns the comparison of all turns once there is one to go by.
func (t *turns) look(o Objective, now time.Duration, over bool) (Ruling, *Judgement) {
	points := o.since(t.from)
	if len(points) < t.want() {
		if over && t.spent(o, now) {
			return t.giveUp(o, o.tooFew(len(points))), nil
		}
		return Ruling{}, nil
	}
	next := turn{t.on, points}
	if !o.Lower && (t.silent(next.beginning(t.half)) || t.silent(next.end(t.half))) {
		t.from, t.lull = now, now
		return Ruling{}, nil
	}
	t.add(next, o.Lower)
	half := t.longer(o)
	ruling, j := t.decide(o, now)
	if half > 0 && now < t.deadline(o) && (ruling.Do == ChangeSides || ruling.Do == AskToUndo || ruling.Do == DropIt) {
		t.lengthen(half, now)
		return Ruling{Do: ChangeSides}, nil
	}
	return ruling, j
}

// spent reports whether a turn whose time is over has had it: after a lull it begins anew, as
// long as there is time for the trial.
func (t *turns) spent(o Objective, now time.Duration) bool {
	return t.lull == 0 || now >= min(t.lull+o.Timeout(), t.deadline(o))
}

// giveUp ends a trial in which nothing can be measured any more. What was kept stays,
// for the reason that it was kept for. why is of one that was never silent.
func (t *turns) giveUp(o Objective, why string) Ruling {
	switch {
	case t.kept:
		return Ruling{Do: KeepIt}
	case t.lull > 0:
		return Ruling{DropIt, fmt.Sprintf("not measurable: %s showed no progress in much of the time", o.Whose())}
	}
	return Ruling{DropIt, why}
}

// decide looks at the pairs compared so far, as many upwards as downwards,
// and decides or changes sides. Once the time is over it decides at each turn,
// whatever the tunlet would like to wait for.
func (t *turns) decide(o Objective, now time.Duration) (Ruling, *Judgement) {
	n := len(t.compared)
	over := now >= t.deadline(o)
	if n == 0 || !over && (n%2 == 1 || n < t.hold) {
		return Ruling{Do: ChangeSides}, nil
	}
	if n == 1 {
		return t.giveUp(o, fmt.Sprintf("not measurable: the time for it was over after one comparison of %s", o.Whose())), nil
	}
	if n%2 == 1 { // the time is over: without the first one there are as many of both
		t.compared = t.compared[1:]
	}
	f := t.findings(o.MinGain, o.Lower)
	j := t.judgement(f, o.Lower)
	if t.kept {
		return f.decideAgain(o.MinGain, over, j.Text()), j
	}
	return f.decide(o, over, share(t.began, now, t.deadline(o)), j.Text()), j
}

// decide is the verdict on a change that has been measured as text says. part of the
// time is over.
func (f findings) decide(o Objective, over bool, part float64, text string) Ruling {
	switch alpha := alphaOf(over); {
	case f.proveLoss(alpha):
		return Ruling{UndoIt, "measured loss: " + text}
	case f.gain >= 1+o.MinGain && f.proveGain(alpha, over):
		return Ruling{Do: AskToKeep}
	case f.useless(o.MinGain), over && !f.few() && f.falseHope <= doubt:
		return Ruling{Do: AskToUndo}
	case f.few() && (over || f.hopeless(o.Promised, o.MinGain, part)):
		return Ruling{DropIt, text}
	case over || f.unpromising(o.MinGain) || f.hopeless(o.Promised, o.MinGain, part):
		return Ruling{DropIt, f.doubts() + text}
	}
	return Ruling{Do: ChangeSides}
}

// decideAgain is the verdict on a change that was kept before. It goes only if it
// is shown to do harm: the trouble that it cured may just not be there now.
func (f findings) decideAgain(minGain float64, over bool, text string) Ruling {
	switch alpha := alphaOf(over); {
	case f.proveLoss(alpha) || over && f.likelyLoss(minGain, alpha):
		return Ruling{UndoIt, "regressed after it was kept: " + text}
	case over && (f.few() || f.gain < 1/(1+minGain)):
		return Ruling{KeepIt, "compared again, no certain loss: " + text}
	case over || f.proveGain(alpha, over) || f.gain >= 1 && f.pairs >= leastPairs:
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

// share returns which part of the time from start to end is over at now, above 0.
func share(start, now, end time.Duration) float64 {
	return min(1, max(0.01, float64(now-start)/float64(max(1, end-start))))
}

// judgement returns the findings for people.
func (t *turns) judgement(f findings, lower bool) *Judgement {
	if f.counted != nil {
		return f.judgement(f.counted.off, f.counted.on)
	}
	j := f.judgement(t.off, t.in)
	var levels []float64
	for _, one := range t.compared[len(t.compared)-f.pairs:] {
		levels = append(levels, one.level)
	}
	level, half := geometricMedian(levels), math.Sqrt(f.gain)
	if lower {
		half = 1 / half
	}
	switch { // where one is nothing, there is no middle between both: the other stays the mean
	case half == 0:
		j.After.Median = 0
	case math.IsInf(half, 1):
		j.Before.Median = 0
	default:
		j.Before.Median, j.After.Median = level/half, level*half
	}
	return j
}
