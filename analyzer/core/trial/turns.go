// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"
	"slices"
	"time"
)

// turns is a change that is judged in turns: it is taken back and made again
// until the difference shows, or the time is over. A comparison of before and
// after alone cannot tell a change from what the application does by itself: a
// phase, a drift, a busy neighbour. In turns these hit both sides alike.
//
// Each turn of the change, or of its absence, has two halves. The first is
// compared with the end of the turn before, the second with the beginning of the
// next: comparisons are of neighbours and as often upwards as downwards, so that
// a drift favours neither side (the ABBA order of crossover trials).
type turns struct {
	on       bool // the change is in force in the present turn
	from     time.Duration
	lull     time.Duration // when the present turn began anew because nothing happened; 0: it did not
	last     turn          // the latest complete one
	compared []pair        // one for each switch so far
	within   []float64     // how far the halves of a turn differ, as a ratio of at least 1
	same     []stretches   // those halves, of turns on either side in turn
	half     int           // samples that half a turn has at least
	hold     int           // do not decide before so many pairs
	number   int           // of the present turn, from 0
	began    time.Duration
	// kept: it was kept before, and is judged again because it seemed to have
	// become worse. It stays unless a loss is shown.
	kept bool
	// judged is the comparison that it was kept for.
	judged *Judgement
	// proven: the verdict is to keep it, as soon as it is in force again.
	proven  string
	off, in sum     // what was seen without and with the change
	seen    []point // of both
	// everOff and everIn are that of all turns, also of those that were too short.
	everOff, everIn sum
	without         []point // of the latest turn without it
}

// turn is a complete turn of a change.
type turn struct {
	on     bool
	points []point
}

// pair is the comparison of two neighbouring halves.
type pair struct {
	gain  float64   // of the half with the change
	clear bool      // by the samples of these halves alone
	level float64   // typical value, in the middle between both
	sums  stretches // first the half without the change
}

// newTurns goes on in turns after a first turn that begins with the change in force
// and has seen points. before is from before the change; kept and judged as in turns.
func newTurns(now time.Duration, before, points []point, kept bool, judged *Judgement, o Objective) *turns {
	t := &turns{on: true, began: now, kept: kept, judged: judged}
	gap := burst(points)
	if moved(before) {
		gap = burst(slices.Concat(before, points))
	}
	t.half = max(MinSamples, samplesPerBurst*gap)
	if len(before) >= MinSamples && !t.kept && gap == 1 {
		t.add(turn{false, before}, o.Lower)
		t.add(turn{true, points}, o.Lower)
	} else {
		t.last = turn{true, points}
		t.note(t.last)
	}
	return t
}

// samplesPerBurst is how many intervals of the application's own bursts half a
// turn has at least, and maxBurst the longest of them in samples.
const (
	samplesPerBurst = 6
	maxBurst        = 8
	// longestHalf is how many samples half a turn has at most.
	longestHalf = samplesPerBurst * maxBurst
)

// burst returns how many samples have to be joined for progress to be seen in
// most of them, a power of two.
func burst(points []point) int {
	length := usualLength(points)
	n := 1
	for n < maxBurst && inBursts(joined(points, time.Duration(n)*length)) {
		n *= 2
	}
	return n
}

// changeSides begins the next turn, of the other side.
func (t *turns) changeSides() {
	t.number++
	t.on, t.lull = !t.on, 0
}

// deadline is when the time for the turns is over. It goes by the pace of the slower side, which
// may show late.
func (t *turns) deadline(o Objective) time.Duration { return t.began + o.Stretch(turnsTimeout) }

// postpone lets the turns take so much longer.
func (t *turns) postpone(by time.Duration) {
	t.began += by
	if t.lull > 0 {
		t.lull += by
	}
}

// silent reports whether half a turn saw no progress, although earlier ones of the same
// side did. It says nothing: an application between two phases looks the same.
func (t *turns) silent(points []point) bool {
	if t.on {
		return t.everIn.lull(points)
	}
	return t.everOff.lull(points)
}

// counting reports whether what happened is counted: there is too little of it on one
// side to be seen in most samples.
func (t *turns) counting() bool { return t.off.sparse() || t.in.sparse() }

// want returns how many samples the present turn is to have: two halves, and up
// to two more, lest turns keep step with something periodic in the application.
// The lengths look like chance, but are the same in each run.
func (t *turns) want() int {
	return min(2*t.half+int(2*float64(t.half)*scattered(uint64(t.number))), historySize)
}

// scattered returns a number from 0 to 1 for each n, as random numbers are
// (SplitMix64, Steele et al. 2014). The fractions of multiples of an irrational
// number would not do: their sums are nearly equidistant.
func scattered(n uint64) float64 {
	z := (n + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// add compares a complete turn with the one before it.
func (t *turns) add(next turn, lower bool) {
	t.note(next)
	if t.last.points != nil {
		a, b := t.last.end(t.half), next.beginning(t.half)
		if t.last.on {
			a, b = b, a
		}
		t.compared = append(t.compared, t.compare(a, b, lower, significance))
	}
	t.differ(next.beginning(t.half), next.end(t.half))
	t.same = append(t.same, stretches{sumOf(next.beginning(len(next.points) / 2)), sumOf(next.points[len(next.points)/2:])})
	t.differ(next.beginning(t.half/2), next.beginning(t.half)[t.half/2:])
	t.last = next
}

// differ notes how far the application itself varies from one part of a turn to
// another.
func (t *turns) differ(a, b []point) {
	one := typicalGain(joined(a, 0), joined(b, 0), false)
	t.within = append(t.within, max(one, 1/one))
}

// compare returns how two neighbouring halves differ, b being the one with the
// change.
func (t *turns) compare(a, b []point, lower bool, alpha float64) pair {
	valuesA, valuesB := alike(a, b)
	j := compare(valuesA, valuesB, lower)
	return pair{
		gain: typicalGain(valuesA, valuesB, lower), clear: j.P <= alpha, sums: stretches{sumOf(a), sumOf(b)},
		level: math.Sqrt(j.Before.Median * j.After.Median),
	}
}

// note adds a turn to what was seen.
func (t *turns) note(of turn) {
	t.seen = append(t.seen, of.points...)
	if of.on {
		t.in, t.everIn = t.in.add(sumOf(of.points)), t.everIn.add(sumOf(of.points))
		return
	}
	t.off, t.everOff = t.off.add(sumOf(of.points)), t.everOff.add(sumOf(of.points))
	t.without = of.points
}

// beginning returns the first samples of a turn, half a turn's. A short one has
// one half only: the first two turns may be short.
func (t turn) beginning(half int) []point { return t.points[:min(half, len(t.points))] }

// end returns its last samples.
func (t turn) end(half int) []point { return t.points[max(0, len(t.points)-half):] }
