// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// restPeriod is how often there is a tick and processes are sampled while
	// nothing happens. A round wakes some threads in three processes and costs
	// more than a millisecond of CPU time; at the tick's own pace that is some
	// percent of a core for a program that needs no tuning.
	restPeriod = 250 * time.Millisecond
	// hurryFor is how long every tick is sampled after something happened: a
	// process started, a tunlet asked for a measure point, a change was made.
	hurryFor = 2 * time.Second
)

// hurry samples every tick for a while.
func (s *Session) hurry() {
	s.hurryUntil = s.now() + hurryFor
	s.setPace(s.cfg.Tick)
}

// relax goes back to the slower pace when nothing has happened for a while, and
// nothing is about to be decided by samples.
func (s *Session) relax() {
	switch {
	case s.core.Busy() || s.core.Deciding():
		s.hurry()
	case s.now() >= s.hurryUntil:
		s.setPace(s.slowest())
	}
}

// slowest is the pace while nothing happens: as slow as the askers allow.
func (s *Session) slowest() time.Duration {
	period := restPeriod
	for _, a := range s.askers {
		if wanted := time.Duration(a.want.GetPeriodNanos()); wanted > 0 {
			period = min(period, wanted)
		}
	}
	return max(s.cfg.Tick, period)
}

// setPace tells the controllers, as soon as somebody is there to use samples.
func (s *Session) setPace(period time.Duration) {
	if !s.users() {
		return
	}
	if s.ticker != nil && s.pace != period {
		s.ticker.Reset(period)
	}
	s.pace = period
	for _, c := range s.controllers {
		if c.channel == nil || c.pace == period {
			continue
		}
		c.pace = period
		s.send(c, &attunev1.ManageResponse{Request: &attunev1.ManageResponse_SetSampling{
			SetSampling: &attunev1.SetSampling{PeriodNanos: int64(period), AggregateNanos: int64(period)},
		}})
	}
}
