// SPDX-License-Identifier: Apache-2.0

package meter

import "time"

// due is something that is to be done periodically.
type due struct {
	next   time.Time
	period time.Duration
}

// is says whether it is time, and if so sets the next one. What is late is not
// made up for. Another period than before counts from the last time.
func (d *due) is(now time.Time, period time.Duration) bool {
	if period <= 0 {
		*d = due{}
		return false
	}
	if d.period > 0 {
		d.next = d.next.Add(period - d.period)
	}
	d.period = period
	if now.Before(d.next) {
		return false
	}
	if d.next = d.next.Add(period); d.next.Before(now) {
		d.next = now.Add(period)
	}
	return true
}
