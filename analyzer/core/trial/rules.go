// SPDX-License-Identifier: Apache-2.0

package trial

import "time"

// The rules that nobody has had to change.
const (
	// SettleTime is the time after a change whose samples are dropped.
	SettleTime = 100 * time.Millisecond
	// MinSamples is the least number of samples after the change, and waited
	// for before it: the least for which a median has a 95 % confidence
	// interval that assumes nothing.
	MinSamples = 6
	// minWatched is the least number of samples from before a change by which it is
	// watched over: fewer differ from no window of 2*MinSamples by significance.
	minWatched = 3

	// judgeTimeout and baselineWait: see [Objective.Timeout] and [Objective.BaselineWait].
	judgeTimeout = 10 * time.Second
	baselineWait = 400 * time.Millisecond
	// maxSamples ends the comparison of before and after: what is not plain by
	// then is judged in turns.
	maxSamples = 12
	// obviousGain is the least gain, as a ratio, that is kept after one comparison
	// of before and after, if it was predicted; and a loss as large is undone
	// after it. Anything less, or not foreseen, is judged in turns.
	obviousGain = 3.0
	// fairGain, modestGain, largeGain and plainGain are gains that fewer and fewer
	// comparisons prove; their inverses are losses.
	fairGain, modestGain, largeGain, plainGain = 1.15, 1.3, 1.5, 2
	// turnsTimeout bounds the time that a change is judged in turns of one length.
	turnsTimeout = 60 * time.Second
	// maxWaits bounds how often a tunlet may answer WAIT.
	maxWaits = 3
	// watchWindow is the time over which a kept change's regression must last.
	watchWindow = 2 * time.Second
	// recheckPause lies between two further trials of a kept change. It is doubled each
	// time, at most maxBackOff times: to 640 s.
	recheckPause = 10 * time.Second
	maxBackOff   = 6
	// significance is the level of a comparison, of the watch over kept changes and
	// of the last look at a trial in turns; the looks before that take half of it.
	significance = 0.01
)
