// SPDX-License-Identifier: Apache-2.0

package beat

import (
	"context"
	"testing"
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
