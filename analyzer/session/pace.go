// SPDX-License-Identifier: Apache-2.0

package session

import "time"

const (
	// restPeriod is how often there is a tick and processes are sampled while
	// nothing happens. A round wakes some threads in three processes and costs
	// more than a millisecond of CPU time; at the tick's own pace that is some
	// percent of a core for a program that needs no tuning.
	restPeriod = 250 * time.Millisecond
	// longestRest is that of a program in which nothing has happened for long, while
	// no tunlet runs: what begins after so long may be found a part of that later,
	// restShare of it.
	longestRest = time.Second
	restShare   = 0.05
	// glance is the pace, in ticks, of a program in which something happened, but
	// that no tunlet looks at or sleeps for: what wakes one is shown by two samples.
	glance = 2
	// hurryFor is how long every tick is sampled after something happened: a
	// process started, a tunlet asked for a measure point, a change was made.
	hurryFor = 2 * time.Second
	// maxCredit is how much of that time a session has to begin with, and at most:
	// something happens all the time where tunlets look and look away again, and
	// programs start others. creditShare of the time is added to it.
	// Less than leastCredit is not begun with: each change of the pace is told to
	// all controllers.
	maxCredit   = 3 * time.Second
	leastCredit = 500 * time.Millisecond
	creditShare = 0.05
)

// haste is for how long every tick is sampled.
type haste struct {
	until  time.Duration // of the session
	credit time.Duration
	at     time.Duration // when that was reckoned
}

// reckon takes off the credit what was spent until now, or adds what has come.
func (h *haste) reckon(now time.Duration, spent bool) {
	passed := now - h.at
	h.at = now
	if spent {
		h.credit = max(0, h.credit-passed)
		return
	}
	h.credit = min(maxCredit, h.credit+time.Duration(creditShare*float64(passed)))
}

// hurry samples every tick for a while, as far as there is credit.
func (s *Session) hurry() {
	s.haste.reckon(s.now(), s.spends())
	if s.haste.credit < leastCredit && s.now() >= s.haste.until {
		return
	}
	s.haste.until = s.now() + min(hurryFor, s.haste.credit)
	s.setPace(s.quickest())
}

// watched says whether somebody beside the sleeping tunlets uses samples.
func (s *Session) watched() bool { return len(s.tunlets) > 0 || len(s.askers.list) > 0 }

// quickest is the pace while something happens.
func (s *Session) quickest() time.Duration {
	if s.watched() || s.sleepers.watch.Expects() {
		return s.cfg.Tick
	}
	return glance * s.cfg.Tick
}

// rest is the pace while nothing happens and nobody asks for another one.
func (s *Session) rest() time.Duration {
	if s.watched() {
		return restPeriod
	}
	quiet := time.Duration(restShare * float64(s.now()-s.haste.until))
	return min(longestRest, max(restPeriod, quiet.Truncate(restPeriod)))
}

// spends says whether every tick is sampled without need.
func (s *Session) spends() bool {
	return s.now() < s.haste.until && !s.decides() && s.slowest() > s.cfg.Tick
}

// decides says whether something is about to be decided by samples.
func (s *Session) decides() bool { return s.core.Busy() || s.core.Deciding() }

// relax goes back to the slower pace when nothing has happened for a while, and
// nothing is about to be decided by samples.
func (s *Session) relax() {
	s.haste.reckon(s.now(), s.spends())
	switch {
	case s.decides():
		s.haste.until = s.now() + min(hurryFor, s.haste.credit)
		s.setPace(s.cfg.Tick)
	case s.now() >= s.haste.until:
		s.setPace(s.slowest())
	default:
		s.setPace(s.quickest())
	}
}

// slowest is the pace while nothing happens: as slow as the askers allow.
func (s *Session) slowest() time.Duration {
	period := s.rest()
	if wanted := s.askers.period(); wanted > 0 {
		period = min(period, wanted)
	}
	return max(s.cfg.Tick, period)
}

// setPace changes the pace, as soon as somebody is there to use samples.
func (s *Session) setPace(period time.Duration) {
	if s.pace == period || !s.users() {
		return
	}
	s.pace = period
	s.wants.changedForAll()
}
