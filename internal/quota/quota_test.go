// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"slices"
	"sync"
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
		if r.TakeMany(2, 4) || !r.TakeMany(2, 3) || r.TakeMany(2, 1) {
			t.Error("another user does not have 3 at once, all or none")
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

// TestRateWaits: who asks too often gets their turn later, and who would wait too long is
// refused, later too.
func TestRateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate[int](2, time.Second)
		began, turns, refused := time.Now(), []time.Duration{}, 0
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 10 {
			all.Go(func() {
				ok := r.Wait(t.Context(), 1, 3*time.Second)
				mu.Lock()
				defer mu.Unlock()
				if !ok {
					refused++
				}
				turns = append(turns, time.Since(began).Round(time.Second))
			})
			synctest.Wait()
		}
		all.Wait()
		want := []time.Duration{0, 0, time.Second, 2 * time.Second}
		if refused != 5 || !slices.Equal(turns[:4], want) || turns[9] != 3*time.Second {
			t.Errorf("%d refused, turns after %v", refused, turns)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Take(2)
		r.Take(2)
		if r.Wait(ctx, 2, time.Hour) {
			t.Error("has a turn, though its caller has gone")
		}
	})
}

func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShare[int](10, time.Second)
		if pause := s.Spend(1, time.Second); pause != 0 {
			t.Errorf("pauses for %v at first", pause)
		}
		if pause := s.Spend(1, time.Millisecond); pause != 10*time.Millisecond {
			t.Errorf("pauses for %v, want 10ms", pause)
		}
		if pause := s.Spend(2, time.Millisecond); pause != 0 {
			t.Errorf("another one pauses for %v", pause)
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

// TestPlaces: who takes all that they can leaves others theirs, and has more when some are
// given back.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces[string](16, 8)
		waiting := 0
		take := func(who string) chan error {
			done := make(chan error, 1)
			go func() { done <- p.Take(t.Context(), who, func() { waiting++ }) }()
			synctest.Wait()
			return done
		}
		var bobs []chan error
		for range 20 {
			bobs = append(bobs, take("bob"))
		}
		if p.by["bob"] != 8 || waiting != 12 {
			t.Errorf("bob has %d and waits for %d, want 8 and 12", p.by["bob"], waiting)
		}
		for _, who := range []string{"ann", "carol", "dave"} {
			for range 2 {
				if err := <-take(who); err != nil {
					t.Errorf("%s: %v", who, err)
				}
			}
		}
		p.Leave("bob")
		synctest.Wait()
		if p.by["bob"] != 7 { // only three are free
			t.Errorf("bob has %d, want 7", p.by["bob"])
		}
		for range 2 {
			for _, who := range []string{"ann", "carol", "dave"} {
				p.Leave(who)
			}
		}
		synctest.Wait()
		if p.by["bob"] != 8 || p.Taken() != 8 || waiting != 12 {
			t.Errorf("bob has %d of %d, said %d times that he waits", p.by["bob"], p.Taken(), waiting)
		}
		done := 0 // whoever comes first of those that wait
		for _, bob := range bobs {
			done += len(bob)
		}
		if done != 9 {
			t.Errorf("%d of bob's are served, want 8 and the one that took a place that was given back", done)
		}
	})
}
