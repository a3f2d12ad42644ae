// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRate: a burst, then one after each interval; another user has all of theirs.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate[int](3, time.Second)
		takes := func(who int) (n int) {
			for r.Take(who) {
				n++
			}
			return n
		}
		if n := takes(1); n != 3 {
			t.Errorf("%d at once, want 3", n)
		}
		if n := takes(2); n != 3 {
			t.Errorf("another user has %d, want 3", n)
		}
		time.Sleep(1500 * time.Millisecond)
		if n := takes(1); n != 1 {
			t.Errorf("%d after one interval and a half, want 1", n)
		}
		time.Sleep(time.Hour)
		if n := takes(1); n != 3 {
			t.Errorf("%d after an hour, want 3", n)
		}
	})
}

// TestRateForgets: who has not asked for long is forgotten.
func TestRateForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate[int](1, time.Second)
		for who := range leastTidied {
			r.Take(who)
		}
		time.Sleep(time.Minute)
		r.Take(-1)
		if n := len(r.full); n != 1 {
			t.Errorf("%d are remembered, want 1", n)
		}
	})
}

// TestSurplus: who has most loses their oldest.
func TestSurplus(t *testing.T) {
	for _, tt := range []struct {
		list string
		want int
	}{
		{"", -1}, {"a", 0}, {"ab", 0}, {"abb", 1}, {"babab", 0}, {"acbbcb", 2},
	} {
		if got := Surplus([]byte(tt.list), func(b byte) byte { return b }); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.list, got, tt.want)
		}
	}
}
