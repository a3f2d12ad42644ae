// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"testing"
	"time"
)

// A change whose effect takes more than a turn to come is given longer ones, whether it does good
// or harm, and whichever side it is that takes its time.
func TestEffectThatTakesItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		off, on func(sample int) float64 // of a turn
		want    Action
	}{
		"good, in the end":                         {func(n int) float64 { return 240 * float64((n+1)%20/19) }, speedFrom(26, 5, 5000), AskToKeep},
		"bad, in the end":                          {speedFrom(0, 0, 100), speedFrom(8, 100, 20), UndoIt},
		"bad, as slowly as the other side is good": {speedFrom(8, 20, 100), speedFrom(8, 100, 20), UndoIt},
		"good, until it is long gone":              {speedFrom(8, 100, 20), speedFrom(0, 0, 100), AskToKeep},
	} {
		t.Run(name, func(t *testing.T) {
			r := begun(0, false)
			r.turns = newTurns(r.now, nil, r.objective.before(0, r.now, 20), false, nil, r.objective)
			half, ruling := r.turns.half, Ruling{Do: ChangeSides}
			for turns := 0; ruling.Do == ChangeSides && turns < 60; turns++ {
				speed := c.off
				if inForce, _ := r.ChangeSides(); inForce {
					speed = c.on
				}
				r.Resume(r.now)
				ruling = Ruling{}
				for n := 0; ruling.Do == LookOn; n++ {
					r.goOn(1, speed(n))
					ruling = r.Look(r.objective, r.now, false)
				}
			}
			if ruling.Do != c.want || r.turns.half <= half {
				t.Errorf("%+v after %v, half turns of %d and %d samples: %s", ruling, r.now, half, r.turns.half, r.Judgement.Text())
			}
		})
	}
}

// speedFrom is a speed from a sample on, and that before.
func speedFrom(sample int, before, speed float64) func(int) float64 {
	return func(n int) float64 {
		if n < sample {
			return before
		}
		return speed
	}
}

// No turn is made longer than the time that it has, and none where chance shows as much.
func TestTurnsThatStayShort(t *testing.T) {
	slow := stretches{sum{10, 1, 20, 20}, sum{90, 1, 20, 20}}
	even := stretches{sum{50, 1, 20, 20}, sum{50, 1, 20, 20}}
	one := stretches{sum{0, 1, 0, 20}, sum{1, 1, 1, 20}}
	many := []stretches{slow, even, slow, even, slow, even}
	for name, c := range map[string]struct {
		length time.Duration // of a sample
		same   []stretches
		sparse bool
		want   int
	}{
		"slow":                        {50 * time.Millisecond, many, false, 24},
		"slow, with rare samples":     {250 * time.Millisecond, many, false, 0},
		"slow on both sides":          {50 * time.Millisecond, []stretches{slow, slow, slow, slow, slow, slow}, false, 0},
		"even":                        {50 * time.Millisecond, []stretches{even, even, even, even, even, even}, false, 0},
		"too early":                   {50 * time.Millisecond, many[1:], false, 0},
		"an event in each, by chance": {50 * time.Millisecond, []stretches{one, even, one, even, one, even}, true, 0},
		"slow in events":              {50 * time.Millisecond, many, true, 24},
	} {
		t.Run(name, func(t *testing.T) {
			o := Objective{History: &History{}}
			turns := &turns{half: 12, same: c.same, seen: []point{{from: 0, at: c.length, value: 1 / c.length.Seconds()}}}
			if c.sparse {
				turns.in = sum{10, 1, 10, 20}
			}
			if got := turns.longer(o); got != c.want {
				t.Errorf("halves of %d samples, want %d", got, c.want)
			}
		})
	}
}
