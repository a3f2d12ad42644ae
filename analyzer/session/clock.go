// SPDX-License-Identifier: Apache-2.0

package session

import "time"

// clock tells times of a session.
type clock struct {
	start time.Time
	wall  func() time.Time
}

// Start returns when the session started.
func (c *clock) Start() time.Time { return c.start }

// now returns the time since the session's start.
func (c *clock) now() time.Duration { return c.since(c.wall()) }

// since returns t as a time since the session's start.
func (c *clock) since(t time.Time) time.Duration { return max(0, t.Sub(c.start)) }

// sinceUnix returns a Unix time in nanoseconds as a session time; 0 stays 0. It
// goes by how long ago that was and is never in the future: whoever sets the
// clock meanwhile, or has one that is ahead, must not make samples from before a
// change look like samples after it.
func (c *clock) sinceUnix(nanos int64) time.Duration {
	if nanos == 0 {
		return 0
	}
	now := c.wall()
	age := max(0, time.Duration(now.UnixNano()-nanos))
	return max(0, c.since(now)-age)
}
