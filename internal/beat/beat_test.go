// SPDX-License-Identifier: Apache-2.0

package beat

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimes(t *testing.T) {
	tests := []struct{ at, next, near time.Duration }{
		{0, Interval, 0},
		{1, Interval, 0},
		{Interval / 4, Interval, 0},
		{Interval * 3 / 4, Interval, Interval},
		{Interval - 1, Interval, Interval},
		{Interval, 2 * Interval, Interval},
		{time.Hour + Interval*5/4, time.Hour + 2*Interval, time.Hour + Interval},
	}
	for _, tt := range tests {
		at := origin.Add(tt.at)
		if next, near := Next(at).Sub(origin), Near(at).Sub(origin); next != tt.next || near != tt.near {
			t.Errorf("%v: next %v, near %v; want %v and %v", tt.at, next, near, tt.next, tt.near)
		}
	}
}

func TestMultiple(t *testing.T) {
	const second = time.Second
	for _, tt := range []struct{ after, period, want time.Duration }{
		{0, second, second}, {second - 1, second, second}, {second, second, 2 * second}, {second + 1, second / 4, second * 5 / 4},
	} {
		if got := Multiple(origin.Add(tt.after), tt.period).Sub(origin); got != tt.want {
			t.Errorf("after %v, each %v: %v, want %v", tt.after, tt.period, got, tt.want)
		}
	}
}

func TestTickComesAtMultiples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var times []time.Time
		Tick(ctx, time.Second, func(now time.Time) {
			if times = append(times, now); len(times) == 3 {
				end()
			}
		})
		for i, at := range times {
			if want := Multiple(times[0], time.Second).Add(time.Duration(i-1) * time.Second); !at.Equal(want) {
				t.Errorf("time %d: %v, want %v", i, at, want)
			}
		}
	})
}

func TestWait(t *testing.T) {
	next := Next(time.Now())
	Wait(t.Context())
	if now := time.Now(); now.Before(next) {
		t.Errorf("waited until %v before the beat", next.Sub(now))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 10_000 { // 100 s of beats
		Wait(ended)
	}
}
