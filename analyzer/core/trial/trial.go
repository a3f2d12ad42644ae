// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"time"
)

// Trial compares an objective with a change to the same without it. The zero value has
// compared nothing yet. A copy of a trial that is not in turns is one of its own.
type Trial struct {
	// Judgement is the latest comparison; nil: there was none.
	Judgement *Judgement

	quietFrom time.Duration // no sample from before this is of the baseline
	before    []point
	askedAt   time.Duration // the change was asked for
	postponed time.Duration // for so long nothing ran since it was prepared
	from      time.Duration // samples from here on count as after
	waits     int           // times that the tunlet wanted to wait
	hold      int           // do not judge before so many samples
	turns     *turns        // nil: it is not being judged in turns

	watchFrom    time.Duration
	rare         []point // of the windows before that, in which too little happened
	rechecks     int     // times that it was kept again
	recheckAfter time.Duration
}

// BaselineWindow says for how long a baseline goes back, see [Objective.Apart].
func BaselineWindow(apart bool) time.Duration {
	_, window := baselineSize(apart)
	return window
}

// baselineSize says how many of the latest samples before a change count, and how old
// they may be. Few, because older ones may be of a phase without the trouble; more
// where one comparison must do, also of progress in bursts.
func baselineSize(apart bool) (samples int, window time.Duration) {
	if apart {
		return 64, 4 * time.Second
	}
	return 10, 2 * time.Second
}

// Prepare returns how many samples a change has that would be asked for now, and that
// nothing has disturbed since quietFrom.
func (t *Trial) Prepare(o Objective, now, quietFrom time.Duration) int {
	t.quietFrom, t.postponed = quietFrom, 0
	return len(t.baseline(o, now))
}

// baseline returns the samples before the given time that count: the latest
// ones, not too old, and none from before it was quiet.
func (t *Trial) baseline(o Objective, until time.Duration) []point {
	samples, window := baselineSize(o.Apart)
	return o.before(max(t.quietFrom, until-o.Stretch(window)-t.postponed), until, samples)
}

// Begin fixes the baseline of a change whose parts took effect from first to last,
// and begins to collect. Samples that ended before that came in while the request was
// under way still count. It returns what is wrong with the baseline, for people.
func (t *Trial) Begin(o Objective, askedAt, first, last time.Duration) string {
	t.before, t.askedAt, t.from, t.hold = t.baseline(o, first), askedAt, last+SettleTime, MinSamples
	switch n := len(t.before); {
	case n == 0:
		return "no baseline"
	case n < MinSamples:
		return fmt.Sprintf("weak baseline of %d samples", n)
	}
	return ""
}

// Postpone gives the trial so much more time, in which nothing ran: the baseline of a change
// that has been asked for goes back as much further.
func (t *Trial) Postpone(by time.Duration) {
	t.postponed += by
	if t.turns != nil {
		t.turns.postpone(by)
	}
}

// Distance returns how far between the samples are that came since the change, or in the present
// turn; 0 where it is not known yet. The interval of the first began before that.
func (t *Trial) Distance(o Objective) time.Duration {
	if t.turns != nil {
		return o.distanceAfter(t.turns.from)
	}
	return o.distanceAfter(t.from)
}

// InTurns reports whether the change is being judged in turns.
func (t *Trial) InTurns() bool { return t.turns != nil }

// Look looks at the samples so far, and rules as soon as they suffice. Over says that the
// time for them is over: it rules by what there is.
func (t *Trial) Look(o Objective, now time.Duration, over bool) Ruling {
	if t.turns != nil {
		r, j := t.turns.look(o, now, over)
		if j != nil {
			t.Judgement = j
		}
		return r
	}
	samples := t.latest(o)
	if !o.Apart && (sumOf(t.before).sparse() || sumOf(samples).sparse()) {
		return t.lookAtFew(o, now, samples, over)
	}
	before, after := alike(t.before, samples)
	// Of one that had its samples farther between before, more than there are kept may be alike to few.
	full := len(samples) == historySize && t.waits == 0
	if len(after) < t.hold && !over && !full {
		return Ruling{}
	}
	last := over || full || len(after) >= maxSamples+t.waits*MinSamples && !o.Apart
	return t.compare(o, now, before, after, last, samples)
}

// lookAtFew looks at samples in many of which nothing happened. One comparison of those
// decides nothing, however much more there is: what is rare comes in clusters, and a
// program that begins its work has hardly any before that.
func (t *Trial) lookAtFew(o Objective, now time.Duration, samples []point, over bool) Ruling {
	c := newCounts([]stretches{{sumOf(t.before), sumOf(samples)}}, nil, usualAmount(slices.Concat(t.before, samples)))
	t.Judgement = c.findings(0, o.MinGain, o.Lower).judgement(c.off, c.on)
	switch {
	case over && len(samples) < MinSamples:
		return Ruling{DropIt, o.tooFew(len(samples))}
	case over, len(samples) >= maxSamples+t.waits*MinSamples:
		t.turns = newTurns(now, t.before, samples, false, t.Judgement, o)
		return Ruling{Do: ChangeSides}
	}
	return Ruling{}
}

// latest returns the samples after the change that it is judged by. Of an
// application of which others tune parts at the same time, perhaps later, the
// newest ones say what has come of it.
func (t *Trial) latest(o Objective) []point {
	samples := o.since(t.from)
	if most := 2 * maxSamples; o.Apart && len(samples) > most {
		return samples[len(samples)-most:]
	}
	return samples
}

// compare compares what was before with what is after the change. It decides only
// where the difference is plain; else the change is judged in turns. A measured
// loss is undone without asking the tunlet.
func (t *Trial) compare(o Objective, now time.Duration, before, after []float64, last bool, samples []point) Ruling {
	j := compare(before, after, o.Lower)
	t.Judgement = &j
	low, high := batchesWithin(before, after, j.Gain)
	whole := t.inAll(o, samples) // medians do not see what happens seldom
	j.Low, j.High = min(j.Low, low, whole), max(j.High, high, whole)
	gains, loses := j.shows()
	proven := j.P <= significance && len(after) >= MinSamples && !o.Fewer
	switch {
	case proven && loses && j.Gain <= 1/obviousGain:
		return Ruling{UndoIt, "measured loss: " + j.Text()}
	case proven && gains && j.Gain >= leastPlain(o.Apart) && expected(o.Promised, j.Gain) && t.unprecedented(o, &j):
		return Ruling{Do: AskToKeep}
	case last && len(before) == 0:
		return Ruling{UndoIt, "no baseline to judge it by"}
	case last && len(samples) < MinSamples:
		return Ruling{DropIt, o.tooFew(len(samples))}
	case last && o.Apart:
		return Ruling{DropIt, "no plain gain, and it cannot be compared in turns while other nodes are tuned apart: " + j.Text()}
	case last, proven && j.Gain < 1 && !o.Apart:
		t.turns = newTurns(now, t.before, samples, false, t.Judgement, o)
		return Ruling{Do: ChangeSides}
	}
	return Ruling{}
}

// inAll returns how many times better the mean of the samples is than that from
// before the change; 1 where it cannot be told. It is what was achieved in all
// the time. One disturbed sample may change it, so it proves nothing alone; but
// what it contradicts is not proven either.
func (t *Trial) inAll(o Objective, samples []point) float64 {
	if len(t.before) == 0 || len(samples) == 0 {
		return 1
	}
	return gain(mean(t.before), mean(samples), o.Lower)
}

// overwhelmingGain is more than an application's own phases make of its speed.
const overwhelmingGain = obviousGain * obviousGain

// leastPlain is the least gain that is kept after one comparison. Without turns
// there is one at each sample, for longer than phases of an application last: what
// these make of its speed must not do.
func leastPlain(apart bool) float64 {
	if apart {
		return overwhelmingGain
	}
	return obviousGain
}

// expected reports whether a gain is what an earlier run measured, or the tunlet's
// model predicts. Many models give a lower bound: that a gain is more than they say
// is no objection where it is overwhelming.
func expected(promised, measured float64) bool {
	switch ComparePrediction(promised, measured) {
	case PredictionHolds:
		return true
	case PredictionTooLow:
		return measured >= overwhelmingGain
	}
	return false
}

// unprecedented reports whether a gain is more than the application ever reached by
// itself. Else it may be another phase of the application, which began when the
// change was made.
func (t *Trial) unprecedented(o Objective, j *Judgement) bool {
	for _, one := range o.before(t.quietFrom, t.askedAt, historySize) {
		if gain(one.value, j.After.Median, o.Lower) < modestGain {
			return false
		}
	}
	return true
}
