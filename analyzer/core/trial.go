// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// trial compares an objective with a change to the same without it. First it
// compares before and after; what that leaves open it compares in turns. When the
// change is kept, it watches over it, and may compare again.
//
// It knows the samples only: it changes nothing, and returns what is to be done.
type trial struct {
	quietFrom time.Duration // no sample from before this is of the baseline
	before    []point
	askedAt   time.Duration // the change was asked for
	from      time.Duration // samples from here on count as after
	waits     int           // times that the tunlet wanted to wait
	hold      int           // do not judge before so many samples
	suggested attunev1.Verdict
	judgement *Judgement // nil: nothing was compared
	turns     *turns     // nil: it is not being judged in turns

	watchFrom    time.Duration
	rechecks     int // times that it was kept again
	recheckAfter time.Duration
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

// baseline returns the samples before the given time that count: the latest
// ones, not too old, and none from before it was quiet.
func (t *trial) baseline(o objective, until time.Duration) []point {
	samples, window := baselineSize(o.apart)
	return o.before(max(t.quietFrom, until-window), until, samples)
}

// begin fixes the baseline of a change whose parts took effect from first to last,
// and begins to collect. Samples that ended before that came in while the request was
// under way still count. It returns what is wrong with the baseline, for people.
func (t *trial) begin(o objective, askedAt, first, last time.Duration) string {
	t.before, t.askedAt, t.from, t.hold = t.baseline(o, first), askedAt, last+settleTime, minSamples
	switch n := len(t.before); {
	case n == 0:
		return "no baseline"
	case n < minSamples:
		return fmt.Sprintf("weak baseline of %d samples", n)
	}
	return ""
}

// look looks at the samples: as soon as there are enough at each of them, with a
// stricter level than at the last look, when the time is over.
func (t *trial) look(o objective, now time.Duration, over bool) ruling {
	if t.turns != nil {
		r, j := t.turns.look(o, now, over)
		if j != nil {
			t.judgement = j
		}
		return r
	}
	samples := t.latest(o)
	before, after := alike(t.before, samples)
	if len(after) < t.hold && !over {
		return ruling{}
	}
	last := over || len(after) >= maxSamples+t.waits*minSamples && !o.apart
	return t.compare(o, now, before, after, last, samples)
}

// latest returns the samples after the change that it is judged by. Of an
// application of which others tune parts at the same time, perhaps later, the
// newest ones say what has come of it.
func (t *trial) latest(o objective) []point {
	samples := o.since(t.from)
	if most := 2 * maxSamples; o.apart && len(samples) > most {
		return samples[len(samples)-most:]
	}
	return samples
}

// compare compares what was before with what is after the change. It decides only
// where the difference is plain; else the change is judged in turns. A measured
// loss is undone without asking the tunlet.
func (t *trial) compare(o objective, now time.Duration, before, after []float64, last bool, samples []point) ruling {
	j := compare(before, after, o.lower)
	t.judgement = &j
	whole := t.inAll(o, samples)
	proven := j.P <= significance && len(after) >= minSamples
	switch {
	case proven && j.Gain <= 1/obviousGain && whole < 1:
		return ruling{undoIt, "measured loss: " + j.text()}
	case proven && j.Gain >= leastPlain(o.apart) && whole > 1 && expected(o.promised, j.Gain) && t.unprecedented(o, &j):
		return ruling{do: askToKeep}
	case last && len(before) == 0:
		return ruling{undoIt, "no baseline to judge it by"}
	case last && len(after) < minSamples:
		return ruling{dropIt, tooFew(len(after))}
	case last && o.apart:
		return ruling{dropIt, "no plain gain, and it cannot be compared in turns while other nodes are tuned apart: " + j.text()}
	case last, proven && j.Gain < 1 && !o.apart:
		t.turns = newTurns(now, t.before, samples, false, t.judgement, o.lower)
		return ruling{do: changeSides}
	}
	return ruling{}
}

// inAll returns how many times better the mean of the samples is than that from
// before the change; 1 where it cannot be told. It is what was achieved in all
// the time. One disturbed sample may change it, so it proves nothing alone; but
// what it contradicts is not proven either.
func (t *trial) inAll(o objective, samples []point) float64 {
	if len(t.before) == 0 || len(samples) == 0 {
		return 1
	}
	return gain(mean(t.before), mean(samples), o.lower)
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
func (t *trial) unprecedented(o objective, j *Judgement) bool {
	for _, one := range o.before(t.quietFrom, t.askedAt, historySize) {
		if gain(one.value, j.After.Median, o.lower) < modestGain {
			return false
		}
	}
	return true
}
