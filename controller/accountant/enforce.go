// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// limitEvery is the time between two looks at most where there is a hard limit.
	limitEvery = 20 * time.Millisecond
	// fillRate is how fast a CPU fills memory at most, bytes a second: how soon a limit
	// may be exceeded follows from that.
	fillRate = 4e9
	// held is by what part of a limit the kernel lets the control group have more, as a divisor:
	// the excess is seen before it is held. tooMuch is the part with which the
	// grace is over.
	held, tooMuch = 50, 20
)

// cgroupField is the field that the kernel itself limits.
const cgroupField = "memory.cgroup_peak_bytes"

// hard returns the hard limit of a field; +Inf: there is none.
func (o *Options) hard(field string) float64 {
	least := math.Inf(1)
	for _, limit := range o.Limits {
		if limit.Field == field && !limit.Soft {
			least = min(least, limit.Max)
		}
	}
	return least
}

func (o *Options) anyHard() bool {
	return slices.ContainsFunc(o.Limits, func(l Limit) bool { return !l.Soft })
}

// ErrNotLimitable says that nothing here can measure what is to be limited.
var ErrNotLimitable = errors.New("cannot be limited here")

// limitable refuses a limit whose field nothing here can measure: nobody would see that it is
// exceeded.
func limitable(o *Options, g *group, from source) error {
	for _, limit := range o.Limits {
		var reason string
		switch limit.Field {
		case cgroupField:
			if _, _, known := g.memory(); !known {
				reason = g.reason()
			}
		case "processes.total":
			if r, without := from.(*reaped); without && r.events == nil {
				reason = r.refuse.Error()
			}
		}
		if reason != "" {
			return fmt.Errorf("%w: %s: %s", ErrNotLimitable, limit.Field, reason)
		}
	}
	return nil
}

// hold has the kernel keep the control group near a hard limit, whatever its processes do
// between two looks.
func hold(o *Options, g *group) error {
	most := o.hard(cgroupField)
	if math.IsInf(most, 1) {
		return nil
	}
	return g.hold(uint64(most + most/held))
}

// nearest is how soon a hard limit may be exceeded, by what was seen at the last look.
func (s *sampler) nearest() time.Duration {
	soonest := math.Inf(1)
	values := s.last.values()
	for _, limit := range s.options.Limits {
		room := limit.Max - values[limit.Field]
		switch {
		case limit.Soft || room < 0:
		case limit.Field == "wall_seconds":
			soonest = min(soonest, room)
		case strings.HasPrefix(limit.Field, "memory."):
			soonest = min(soonest, room/(fillRate*float64(runtime.NumCPU())))
		}
	}
	most := s.options.Every
	if s.options.anyHard() {
		most = min(most, limitEvery)
	}
	if soonest > most.Seconds() {
		return most
	}
	return max(firstSample, time.Duration(soonest*float64(time.Second)))
}

// share is what part of the time may be spent with looking, as a divisor.
func (s *sampler) share() time.Duration {
	if s.options.anyHard() {
		return limitShare
	}
	return share
}

// check compares a reading with the limits.
func (s *sampler) check(r *reading) {
	if len(s.options.Limits) == 0 {
		return
	}
	values := r.values()
	for i, limit := range s.options.Limits {
		value := values[limit.Field]
		if e := &s.excesses[i]; value > limit.Max && value > e.peak {
			e.limit, e.peak = limit, value
			if limit.Soft {
				continue
			}
			s.ender.begin(time.Now())
			if strings.HasPrefix(limit.Field, "memory.") && value > limit.Max+limit.Max/tooMuch {
				s.ender.grace = 0
			}
		}
	}
}

// checkKilled begins the end if the kernel has killed for the limit that it holds.
func (s *sampler) checkKilled() {
	most := s.options.hard(cgroupField)
	if math.IsInf(most, 1) || !s.group.killedForMemory() {
		return
	}
	_, peak, _ := s.group.memory()
	for i, limit := range s.options.Limits {
		if limit.Field == cgroupField && limit.Max == most {
			s.excesses[i] = excess{limit, max(s.excesses[i].peak, float64(peak))}
		}
	}
	s.ender.begin(time.Now())
	s.ender.grace = 0
}
