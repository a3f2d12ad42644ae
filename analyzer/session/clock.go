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

// of returns t, which is by the session's clock or has been read from this machine's with a
// monotonic part, as a time since the session's start. It is never in the future.
func (c *clock) of(t time.Time) time.Duration { return min(c.since(t), c.now()) }

// unix returns the time by the session's clock, which tunlets live by: the Unix time of
// the session's start, and what has passed since, whoever sets the time of day meanwhile.
func (c *clock) unix() int64 { return c.start.Add(c.now()).UnixNano() }

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

// disorder bounds how much older than the one before a time may be that a controller
// tells: it measures in several threads.
const disorder = time.Second

// shift takes times of a controller's clock to the session's. It changes where they are
// ahead of that, or go back: one of both clocks has been set. Otherwise times keep their
// distances, however late they come. The zero value is ready.
type shift struct {
	by     time.Duration
	latest int64 // time by the session's clock
}

// apply returns a time of the controller, in nanoseconds, by the session's clock, where it
// is now.
func (s *shift) apply(nanos, now int64) int64 {
	at := nanos + int64(s.by)
	if at > now || at < s.latest-int64(disorder) {
		s.by, at = time.Duration(now-nanos), now
	}
	s.latest = max(s.latest, at)
	return at
}
