// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// resolve turns suggestion and opinion into the verdict. The tunlet may veto a
// KEEP and may ask to look longer; it cannot keep what was not measured.
func (t *trial) resolve(opinion attunev1.Verdict, reason string) ruling {
	switch {
	case opinion == attunev1.Verdict_VERDICT_WAIT && t.waits < maxWaits:
		t.waits++
		if t.turns != nil {
			t.turns.hold = len(t.turns.compared) + 2
			return ruling{do: changeSides}
		}
		t.hold = t.judgement.After.Samples + minSamples
		return ruling{do: lookOn}
	case t.suggested == attunev1.Verdict_VERDICT_UNDO:
		return ruling{undoIt, "no gain: " + t.judgement.text()}
	case opinion == attunev1.Verdict_VERDICT_UNDO:
		return ruling{undoIt, "the tunlet's verdict: " + reason}
	}
	return ruling{keepIt, "gain: " + t.judgement.text()}
}

// changeSides begins the next turn. It returns whether the change is in force in it, and
// what is done for that, for people.
func (t *trial) changeSides() (on bool, why string) {
	t.turns.changeSides()
	switch {
	case !t.turns.on:
		return false, fmt.Sprintf("taken back to compare, turn %d", t.turns.number)
	case t.turns.proven != "":
		return true, "made again to stay"
	}
	return true, fmt.Sprintf("made again to compare, turn %d", t.turns.number)
}

// resume looks at the samples of a turn from when its side is in force. If the verdict
// is to keep the change already, it returns the reason, and looks at none.
func (t *trial) resume(from time.Duration) (proven string) {
	t.turns.from = from + settleTime
	return t.turns.proven
}

// prove notes the verdict that a change stays, if it is not in force in the present
// turn, and reports whether it is not: it has to be made again first.
func (t *trial) prove(reason string) bool {
	if t.turns == nil || t.turns.on {
		return false
	}
	t.turns.proven = reason
	return true
}

// maxBackOff bounds how often the pause between two further trials of a kept
// change is doubled: from 10 s to 640 s.
const maxBackOff = 6

// keep ends the comparison of a change that stays, and watches over it from now on. It
// reports whether that was kept before: then the comparison that it was kept for, which
// it returns, stands, and the next one is put off.
func (t *trial) keep(now time.Duration) (again bool, judged *Judgement) {
	t.watchFrom = now
	was := t.turns
	if was == nil {
		return false, nil
	}
	t.turns = nil
	if was.without != nil { // else it was not measured without it: it is watched as before
		t.before = was.without
	}
	if was.kept {
		t.recheckAfter = now + cooldown<<min(t.rechecks, maxBackOff)
		t.rechecks++
	}
	return was.kept, was.judged
}

// isRetrial reports whether a change is being judged again after it had been kept.
func (t *trial) isRetrial() bool { return t.turns != nil && t.turns.kept }

// breakOff ends a trial without a verdict. The comparison that a change was kept for
// stands.
func (t *trial) breakOff() {
	if t.isRetrial() {
		t.judgement = t.turns.judged
	}
}

// watched reports whether enough is known of the time before a kept change to watch
// over it.
func (t *trial) watched() bool { return len(t.before) >= minSamples }

// watch looks after a kept change: over every window, is the objective worse
// than before the change, by the median and by the mean? Then it is judged again,
// in turns: the application may have come to something else. Samples are rarer by
// now, and of a program whose progress comes in bursts the median alone would
// call that a loss (see alike; joining the few samples from before the change
// would leave too few). A window without any progress says nothing: an
// application between two phases looks the same.
func (t *trial) watch(o objective, now time.Duration) ruling {
	window := o.since(t.watchFrom)
	if now < t.watchFrom+watchWindow && len(window) < historySize-1 || len(window) < 2*minSamples {
		return ruling{}
	}
	t.watchFrom = now
	if now < t.recheckAfter {
		return ruling{}
	}
	j := compare(joined(t.before, 0), joined(window, 0), o.lower)
	loss := 1 / (1 + o.minGain)
	if j.Gain > loss || gain(mean(t.before), mean(window), o.lower) > loss ||
		j.P > significance || j.After.Median == 0 && !o.lower {
		return ruling{}
	}
	if o.apart {
		return ruling{undoIt, "regressed after it was kept: " + j.text()}
	}
	t.turns = newTurns(now, t.before, window, true, t.judgement, o.lower)
	return ruling{do: changeSides}
}
