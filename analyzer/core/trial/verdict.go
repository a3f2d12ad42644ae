// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Resolve turns suggestion and opinion into the verdict. The tunlet may veto a
// KEEP and may ask to look longer; it cannot keep what was not measured.
func (t *Trial) Resolve(suggested, opinion attunev1.Verdict, reason string) Ruling {
	switch {
	case opinion == attunev1.Verdict_VERDICT_WAIT && t.waits < maxWaits:
		t.waits++
		if t.turns != nil {
			t.turns.hold = len(t.turns.compared) + 2
			return Ruling{Do: ChangeSides}
		}
		t.hold = t.Judgement.After.Samples + MinSamples
		return Ruling{Do: LookOn}
	case suggested == attunev1.Verdict_VERDICT_UNDO:
		return Ruling{UndoIt, "no gain: " + t.Judgement.Text()}
	case opinion == attunev1.Verdict_VERDICT_UNDO:
		return Ruling{UndoIt, "the tunlet's verdict: " + reason}
	}
	return Ruling{KeepIt, "gain: " + t.Judgement.Text()}
}

// ChangeSides begins the next turn. It returns whether the change is in force in it, and
// what is done for that, for people.
func (t *Trial) ChangeSides() (on bool, why string) {
	t.turns.changeSides()
	switch {
	case !t.turns.on:
		return false, fmt.Sprintf("taken back to compare, turn %d", t.turns.number)
	case t.turns.proven != "":
		return true, "made again to stay"
	}
	return true, fmt.Sprintf("made again to compare, turn %d", t.turns.number)
}

// Resume looks at the samples of a turn from when its side is in force. If the verdict
// is to keep the change already, it returns the reason, and looks at none.
func (t *Trial) Resume(from time.Duration) (proven string) {
	t.turns.from = from + SettleTime
	return t.turns.proven
}

// Prove notes the verdict that a change stays, if it is not in force in the present
// turn, and reports whether it is not: it has to be made again first.
func (t *Trial) Prove(reason string) bool {
	if t.turns == nil || t.turns.on {
		return false
	}
	t.turns.proven = reason
	return true
}

// Keep ends the comparison of a change that stays, and watches over it from now on. It
// reports whether that was kept before: then the comparison that it was kept for, which
// it returns, stands, and the next one is put off.
func (t *Trial) Keep(now time.Duration) (again bool, judged *Judgement) {
	t.WatchFrom(now)
	was := t.turns
	if was == nil {
		return false, nil
	}
	t.turns = nil
	if was.without != nil { // else it was not measured without it: it is watched as before
		t.before = was.without
	}
	if was.kept {
		t.recheckAfter = now + recheckPause<<min(t.rechecks, maxBackOff)
		t.rechecks++
	}
	return was.kept, was.judged
}

// IsRetrial reports whether a change is being judged again after it had been kept.
func (t *Trial) IsRetrial() bool { return t.turns != nil && t.turns.kept }

// BreakOff ends a trial without a verdict. The comparison that a change was kept for
// stands.
func (t *Trial) BreakOff() {
	if t.IsRetrial() {
		t.Judgement = t.turns.judged
	}
}

// End forgets the samples of a trial whose change has come to its end. The judgement stays.
func (t *Trial) End() { *t = Trial{Judgement: t.Judgement} }

// WatchFrom has the next window over a kept change begin at that time.
func (t *Trial) WatchFrom(at time.Duration) { t.watchFrom, t.rare = at, nil }

// Watched reports whether enough is known of the time before a kept change to watch
// over it: less than no progress there is not. Without turns it tells nothing of fewer processes.
func (t *Trial) Watched(o Objective) bool {
	return len(t.before) >= minWatched && (o.Lower || moved(t.before)) && (!o.Apart || !o.Fewer)
}

// Watch looks after a kept change: over every window, is the objective worse
// than before the change? Then it is judged again, in turns: the application may have
// come to something else. The first value after a pause, in which the tunlet did not
// measure, says nothing: the window begins behind it.
func (t *Trial) Watch(o Objective, now time.Duration) Ruling {
	window := o.since(t.watchFrom)
	if n := len(window); n > 0 && window[n-1].at-window[n-1].from > o.Stretch(watchWindow) {
		t.watchFrom = window[n-1].at
		return Ruling{}
	}
	if now < t.watchFrom+watchWindow && len(window) < historySize-1 || len(window) < 2*MinSamples {
		return Ruling{}
	}
	t.watchFrom = now
	if now < t.recheckAfter {
		return Ruling{}
	}
	j, worse := t.compareWatched(o, window)
	if !worse {
		return Ruling{}
	}
	if o.Apart {
		return Ruling{UndoIt, "regressed after it was kept: " + j.Text()}
	}
	t.turns, t.rare = newTurns(now, t.before, window, true, t.Judgement, o), nil
	return Ruling{Do: ChangeSides}
}

// compareWatched compares a window over a kept change with what was before that, and reports
// whether it is worse, by the median and by the mean. Samples are rarer by now, and of a
// program whose progress comes in bursts the median alone would call that a loss (see alike;
// joining the few samples from before the change would leave too few).
func (t *Trial) compareWatched(o Objective, window []point) (j *Judgement, worse bool) {
	if !o.Apart && (sumOf(t.before).sparse() || sumOf(window).sparse()) {
		return t.countWatched(o, window)
	}
	t.rare = nil
	one := compare(joined(t.before, 0), joined(window, 0), o.Lower)
	worse = one.loses(o.MinGain) && gain(mean(t.before), mean(window), o.Lower) <= 1/(1+o.MinGain)
	return &one, worse && (one.After.Median > 0 || o.Lower)
}

// countWatched is compareWatched where little happens: by the events of this window and of
// those before it that did not suffice. A window without any progress says nothing: an
// application between two phases looks the same. Nor does one that paused in a part of it:
// neighbouring samples do not show that, as its quarters do.
func (t *Trial) countWatched(o Objective, window []point) (j *Judgement, worse bool) {
	if !o.Lower && !moved(window) {
		return nil, false
	}
	t.rare = slices.Concat(t.rare, window)
	sides := []stretches{{sumOf(t.before), sumOf(t.rare)}}
	size := usualAmount(slices.Concat(t.before, t.rare))
	c := newCounts(sides, append(neighbours(t.before), neighbours(t.rare)...), size)
	if long := newCounts(sides, quarters(t.rare), size); long.dispersion > c.dispersion {
		c = long
	}
	j = c.findings(0, o.MinGain, o.Lower).judgement(c.off, c.on)
	if len(t.rare) >= historySize-1 {
		t.rare = nil
	}
	worse = j.loses(o.MinGain)
	return j, worse
}
