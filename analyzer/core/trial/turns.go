// SPDX-License-Identifier: Apache-2.0

package trial

import (
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
	last     turn      // the latest complete one
	compared []pair    // one for each switch so far
	within   []float64 // how far the halves of a turn differ, as a ratio of at least 1
	half     int       // samples that half a turn has at least
	bursty   bool
	hold     int // do not decide before so many pairs
	number   int // of the present turn, from 0
	deadline time.Duration
	// kept: it was kept before, and is judged again because it seemed to have
	// become worse. It stays unless a loss is shown.
	kept bool
	// judged is the comparison that it was kept for.
	judged *Judgement
	// proven: the verdict is to keep it, as soon as it is in force again.
	proven  string
	off, in []float64 // values without and with the change, for the report
	without []point   // of the latest turn without it
}

// turn is a complete turn of a change.
type turn struct {
	on     bool
	points []point
}

// pair is the comparison of two neighbouring halves.
type pair struct {
	gain  float64 // of the half with the change
	clear bool    // by the samples of these halves alone
}

// newTurns goes on in turns after a first turn that begins with the change in force
// and has seen points. before is from before the change; kept and judged as in turns.
func newTurns(now time.Duration, before, points []point, kept bool, judged *Judgement, lower bool) *turns {
	t := &turns{on: true, deadline: now + turnsTimeout, kept: kept, judged: judged}
	gap := burst(points)
	if moved(before) {
		gap = burst(slices.Concat(before, points))
	}
	t.bursty = gap > 1
	t.half = max(MinSamples, samplesPerBurst*gap)
	if len(before) >= MinSamples && !t.kept && !t.bursty {
		t.add(turn{false, before}, lower)
		t.add(turn{true, points}, lower)
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
	t.on = !t.on
}

// silent reports whether half a turn saw no progress, although one of the same side
// did before. It says nothing: an application between two phases looks the same.
func (t *turns) silent(points []point) bool {
	earlier := t.off
	if t.on {
		earlier = t.in
	}
	return !moved(points) && slices.ContainsFunc(earlier, func(v float64) bool { return v != 0 })
}

// moved reports whether samples saw any progress.
func moved(points []point) bool {
	return slices.ContainsFunc(points, func(one point) bool { return one.value != 0 })
}

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
// change. Of an application that progresses in bursts it compares the means:
// its samples tell when, not how much.
func (t *turns) compare(a, b []point, lower bool, alpha float64) pair {
	valuesA, valuesB := alike(a, b)
	out := pair{gain: typicalGain(valuesA, valuesB, lower)}
	if t.bursty {
		out.gain = gain(mean(a), mean(b), lower)
	}
	plain := t.bursty && (out.gain >= plainGain || out.gain <= 1/largeGain)
	out.clear = plain || compare(valuesA, valuesB, lower).P <= alpha
	return out
}

// note keeps the values of a turn for the report.
func (t *turns) note(of turn) {
	if of.on {
		t.in = append(t.in, joined(of.points, 0)...)
		return
	}
	t.off = append(t.off, joined(of.points, 0)...)
	t.without = of.points
}

// beginning returns the first samples of a turn, half a turn's. A short one has
// one half only: the first two turns may be short.
func (t turn) beginning(half int) []point { return t.points[:min(half, len(t.points))] }

// end returns its last samples.
func (t turn) end(half int) []point { return t.points[max(0, len(t.points)-half):] }
