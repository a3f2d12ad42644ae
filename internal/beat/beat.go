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
func Next(after time.Time) time.Time {
	return origin.Add(after.Sub(origin).Truncate(Interval) + Interval)
}

// Near returns the beat that is nearest to a time.
func Near(to time.Time) time.Time { return origin.Add(to.Sub(origin).Round(Interval)) }

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
