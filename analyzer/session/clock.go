// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math"
	"time"
)

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

// sinceStart returns t, which is by the session's clock or has been read from this machine's with a
// monotonic part, as a time since the session's start. It is never in the future.
func (c *clock) sinceStart(t time.Time) time.Duration { return min(c.since(t), c.now()) }

// unixNow returns the time by the session's clock, which tunlets live by: the Unix time of
// the session's start, and what has passed since, whoever sets the time of day meanwhile.
func (c *clock) unixNow() int64 { return c.start.Add(c.now()).UnixNano() }

// sinceUnix returns what a controller tells as Unix time in nanoseconds as a session time;
// 0 stays 0. It is never in the future: whoever has a clock that is ahead must not make
// samples from before a change look like samples after it.
func (c *clock) sinceUnix(nanos int64, s shift) time.Duration {
	if nanos == 0 {
		return 0
	}
	return c.sinceStart(time.Unix(0, nanos).Add(s.by))
}

const (
	// disorder bounds how much older than the one before a time may be that a controller
	// tells: it measures in several threads.
	disorder = time.Second
	// behindFor is for how long all times have to come in late by more than lateness to be
	// of a clock that is behind. Half a second is more than messages take, and leaves most of
	// the two seconds that a sample counts for as from before a change.
	behindFor = 2 * time.Second
	lateness  = 500 * time.Millisecond
)

// shift takes times of a controller's clock to the session's. It changes where they are
// ahead of that, go back, or are behind: the clocks differ, or one of both has been set.
// Otherwise times keep their distances, however late they come. The zero value is ready.
type shift struct {
	by     time.Duration
	behind time.Duration // what of by was found since times came in late; the rest is of clocks that were set
	latest int64         // time by the session's clock
	late   int64         // how late times have come in, at least, since that was judged
	judge  int64         // when it is judged next; of no meaning while there was no time since
}

// apply returns a time of the controller, in nanoseconds, by the session's clock, where it
// is now.
func (s *shift) apply(nanos, now int64) int64 {
	at := nanos + int64(s.by)
	if at > now || at < s.latest-int64(disorder) {
		at, s.late = now, 0
	} else {
		found := s.foundBehind(now-at, now)
		at += found
		s.behind += time.Duration(found)
	}
	s.by, s.latest = time.Duration(at-nanos), max(s.latest, at)
	return at
}

// foundBehind returns how far the controller's clock is behind, by how late another time comes
// in, and those before it.
func (s *shift) foundBehind(late, now int64) (by int64) {
	switch {
	case s.late == math.MaxInt64: // the first since: one that is late by itself says nothing
		s.late, s.judge = late, now+int64(behindFor)
		return 0
	case now < s.judge:
		s.late = min(s.late, late)
		return 0
	}
	if late = min(s.late, late); late > int64(lateness) {
		by = late
	}
	s.late = math.MaxInt64
	return by
}
