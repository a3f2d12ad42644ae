// SPDX-License-Identifier: Apache-2.0

package trial

import "time"

const (
	// slowTurns is how many turns of a side in a row have to end far from how they began for the
	// side to be slow: what it does takes its time, as to fetch memory again.
	slowTurns = 3
	// earlyTurns is in how many turns, of both sides, that is looked for: among more of them chance
	// would show it.
	earlyTurns = 12
	// farEvents is by how many deviations of their difference, squared, counts of events have to
	// differ to be far from each other.
	farEvents = 9
	// longestPart is the part of the time that a turn has which the longest one takes.
	longestPart = 0.75
)

// longer returns how many samples half a turn should have instead, 0 if it has enough: one side is
// slow, and the other is not, or not in the same direction, as both are while the application
// itself is.
func (t *turns) longer(o Objective) int {
	if len(t.same) < 2*slowTurns || len(t.same) > earlyTurns || t.direction(0) == t.direction(1) {
		return 0
	}
	half := min(2*t.half, longestHalf)
	if length := usualLength(t.seen); length > 0 {
		half = min(half, int(longestPart*float64(o.Timeout())/float64(4*length)))
	}
	if half <= t.half {
		return 0
	}
	return half
}

// direction says where the latest turns of a side went: 1 upwards, -1 downwards, 0 neither; side
// is 0 or 1.
func (t *turns) direction(side int) int {
	all := 0
	for n, one := range t.same[len(t.same)-2*slowTurns:] {
		if n%2 == side {
			all += t.far(one)
		}
	}
	return all / slowTurns
}

// far says whether the second of two stretches is far above the first (1), below it (-1), or
// neither.
func (t *turns) far(one stretches) int {
	first, second := one.first.rate(), one.second.rate()
	if size := usualAmount(t.seen); size > 0 && t.counting() {
		a, b := one.first.amount/size, one.second.amount/size
		if (a-b)*(a-b) < farEvents*(a+b) {
			return 0
		}
	}
	switch {
	case second > plainGain*first:
		return 1
	case first > plainGain*second:
		return -1
	}
	return 0
}

// lengthen begins anew with longer turns: what short ones have compared says nothing.
func (t *turns) lengthen(half int, now time.Duration) {
	t.half, t.began, t.hold = half, now, 0
	t.last, t.compared, t.within, t.same = turn{}, nil, nil, nil
	t.off, t.in, t.seen, t.without = sum{}, sum{}, nil, nil
}
