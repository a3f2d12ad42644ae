// SPDX-License-Identifier: Apache-2.0

package beat

import (
	"context"
	"time"
)

// Interval is the time between two beats.
const Interval = 10 * time.Millisecond

// Quiet is for how many beats nothing may come before whoever looks for it at each
// waits to be woken instead.
const Quiet = 10

// origin is a beat.
var origin = time.Now()

// Next returns the first beat after a time.
func Next(after time.Time) time.Time { return Multiple(after, Interval) }

// Multiple returns the first time after another one that is a multiple of a period
// from the first beat: what is done at such times is done together, and wakes the
// process once.
func Multiple(after time.Time, period time.Duration) time.Time {
	return origin.Add(after.Sub(origin).Truncate(period) + period)
}

// Tick calls do at each multiple of a period until ctx ends, with the time.
func Tick(ctx context.Context, period time.Duration, do func(time.Time)) {
	timer := time.NewTimer(time.Until(Multiple(time.Now(), period)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		do(now)
		timer.Reset(time.Until(Multiple(now, period)))
	}
}

// Near returns the beat that is nearest to a time.
func Near(to time.Time) time.Time { return origin.Add(to.Sub(origin).Round(Interval)) }

// Pause waits for d, whatever the beat: for waits that are rare or must be no longer. It
// returns false if ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Wait waits for the next beat, but no longer than until ctx ends.
func Wait(ctx context.Context) {
	timer := time.NewTimer(time.Until(Next(time.Now())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Earliest returns the earliest of the times that are set, or the default.
func Earliest(standard time.Time, times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	if out.IsZero() {
		return standard
	}
	return out
}
