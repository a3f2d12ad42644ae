// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// maxBackOff bounds how often the pause between two further trials of a kept
// change is doubled: from 10 s to 640 s.
const maxBackOff = 6

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
