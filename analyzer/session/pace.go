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

// audience is whom samples are of use to, and how often.
type audience struct {
	decides bool          // something is about to be decided by samples
	watched bool          // somebody beside the sleeping tunlets uses them
	expects bool          // a sleeping tunlet expects to be woken sooner than by two glances
	any     bool          // somebody wants anything at all
	period  time.Duration // the longest between two that askers allow; 0: as it comes
}

// pace is how often there is a tick and processes are sampled. It belongs to the loop.
type pace struct {
	clock    *clock
	tick     time.Duration   // the shortest period
	audience func() audience // looks at it anew
	changed  func()          // is told of each new period
	period   time.Duration   // at present; 0: nobody was there yet
	until    time.Duration   // of the session: for so long every tick is sampled
	credit   time.Duration
	at       time.Duration // when that was reckoned
}

// hurry samples every tick for a while, as far as there is credit.
func (p *pace) hurry() {
	a, now := p.audience(), p.clock.now()
	p.reckon(a, now)
	if p.credit < leastCredit && now >= p.until {
		return
	}
	p.until = now + min(hurryFor, p.credit)
	p.set(a, p.quickest(a))
}

// relax goes back to the slower pace when nothing has happened for a while, and
// nothing is about to be decided by samples.
func (p *pace) relax() {
	a, now := p.audience(), p.clock.now()
	p.reckon(a, now)
	switch {
	case a.decides:
		p.until = now + min(hurryFor, p.credit)
		p.set(a, p.tick)
	case now >= p.until:
		p.set(a, p.slowest(a, now))
	default:
		p.set(a, p.quickest(a))
	}
}

// reckon takes off the credit what was spent since it did last, or adds what has come.
// It is spent when every tick is sampled without need.
func (p *pace) reckon(a audience, now time.Duration) {
	passed := now - p.at
	p.at = now
	if now < p.until && !a.decides && p.slowest(a, now) > p.tick {
		p.credit = max(0, p.credit-passed)
		return
	}
	p.credit = min(maxCredit, p.credit+time.Duration(creditShare*float64(passed)))
}

// quickest is the pace while something happens.
func (p *pace) quickest(a audience) time.Duration {
	if a.watched || a.expects {
		return p.tick
	}
	return glance * p.tick
}

// rest is the pace while nothing happens and nobody asks for another one.
func (p *pace) rest(a audience, now time.Duration) time.Duration {
	if a.watched {
		return restPeriod
	}
	quiet := time.Duration(restShare * float64(now-p.until))
	return min(longestRest, max(restPeriod, quiet.Truncate(restPeriod)))
}

// slowest is the pace while nothing happens: as slow as the askers allow.
func (p *pace) slowest(a audience, now time.Duration) time.Duration {
	period := p.rest(a, now)
	if a.period > 0 {
		period = min(period, a.period)
	}
	return max(p.tick, period)
}

// set changes the pace, as soon as somebody is there to use samples.
func (p *pace) set(a audience, period time.Duration) {
	if p.period == period || !a.any {
		return
	}
	p.period = period
	p.changed()
}
