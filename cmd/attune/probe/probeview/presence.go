// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"slices"
	"time"
)

// presence is how long a point was in place in the running interval.
type presence struct {
	since   time.Time     // in place from then on; zero: it is not
	before  time.Duration // that it was in place before, in the interval
	changed bool          // it was placed or taken out in the interval
}

// turn notes that the point is in place from now on, or not.
func (o *presence) turn(in bool, now, interval time.Time) {
	if in != o.since.IsZero() {
		return
	}
	o.changed = true
	if in {
		o.since = now
		return
	}
	o.before += now.Sub(slices.MaxFunc([]time.Time{o.since, interval}, time.Time.Compare))
	o.since = time.Time{}
}

// end ends an interval, and says for how long of it the point was in place, and
// whether that was a part of it only.
func (o *presence) end(from, to time.Time) (in time.Duration, part bool) {
	in, part = o.before, o.changed
	if !o.since.IsZero() {
		in += to.Sub(slices.MaxFunc([]time.Time{o.since, from}, time.Time.Compare))
	}
	o.before, o.changed = 0, false
	return in, part
}
