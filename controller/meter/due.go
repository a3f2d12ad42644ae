// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"time"

	"github.com/attune-hpc/attune/internal/beat"
)

// due is something that is to be done periodically, together with all else that is.
type due struct {
	last time.Time // zero: it was not done yet
	next time.Time
}

// is says whether it is time, and if so sets the next one. What is late is not
// made up for. Another period than before counts from the last time.
func (d *due) is(now time.Time, period time.Duration) bool {
	if period <= 0 {
		*d = due{}
		return false
	}
	if !d.last.IsZero() {
		d.after(d.last, period)
	}
	if now.Before(d.next) {
		return false
	}
	d.last = now
	d.after(now, period)
	return true
}

// after sets the next time: a multiple of the period, half a period later or more.
func (d *due) after(last time.Time, period time.Duration) {
	d.next = beat.Multiple(last.Add(period/2), period)
}
