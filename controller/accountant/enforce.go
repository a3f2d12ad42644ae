// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// limitEvery is the time between two looks at most where there is a hard limit,
	// soonestLook at least.
	limitEvery, soonestLook = 20 * time.Millisecond, time.Millisecond
	// fillRate is how fast a CPU fills memory at most, bytes a second: how soon a limit
	// may be exceeded follows from that.
	fillRate = 4e9
	// held is by what part of a limit the kernel lets the control group have more, as a divisor:
	// the excess is seen before it is held. heldPages is how many pages more it has at least: the
	// kernel charges some at a time, and up to whole ones. tooMuch is the part with which the
	// grace is over.
	held, heldPages, tooMuch = 50, 16, 20
	// mostHeld is more than any machine has.
	mostHeld = 1 << 62
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
	more := max(most/held, float64(heldPages*os.Getpagesize()))
	return g.hold(uint64(min(most+more, mostHeld)))
}

// enforcer compares readings with limits, and has all processes ended when a hard one is
// exceeded.
type enforcer struct {
	options  *Options
	group    *group
	ender    ender
	excesses []excess // by the limit's place; zero: it is not exceeded
}

func newEnforcer(o *Options, g *group) enforcer {
	return enforcer{options: o, group: g, ender: ender{grace: o.Grace, group: g}, excesses: make([]excess, len(o.Limits))}
}

// nearest is how soon a hard limit may be exceeded, by what was seen at the last look.
func (e *enforcer) nearest(last *reading) time.Duration {
	soonest := math.Inf(1)
	values := last.values()
	for _, limit := range e.options.Limits {
		room := limit.Max - values[limit.Field]
		switch {
		case limit.Soft || room < 0:
		case limit.Field == "wall_seconds":
			soonest = min(soonest, room)
		case strings.HasPrefix(limit.Field, "memory."):
			soonest = min(soonest, room/(fillRate*float64(runtime.NumCPU())))
		}
	}
	most := e.options.Every
	if e.options.anyHard() {
		most = min(most, limitEvery)
	}
	if soonest > most.Seconds() {
		return most
	}
	return max(soonestLook, time.Duration(soonest*float64(time.Second)))
}

// share, as divisors, is what part of the time may be spent with looking, limitShare that with
// hard limits, and besideShare that beside other work.
const share, limitShare, besideShare = 50, 10, 500

// share is what part of the time may be spent with looking, as a divisor.
func (e *enforcer) share() time.Duration {
	switch {
	case e.options.anyHard():
		return limitShare
	case e.options.Beside:
		return besideShare
	}
	return share
}

// check compares a reading with the limits.
func (e *enforcer) check(r *reading) {
	if len(e.options.Limits) == 0 {
		return
	}
	values := r.values()
	for i, limit := range e.options.Limits {
		value := values[limit.Field]
		if most := &e.excesses[i]; value > limit.Max && value > most.peak {
			most.limit, most.peak = limit, value
			if limit.Soft {
				continue
			}
			e.ender.begin(time.Now())
			if strings.HasPrefix(limit.Field, "memory.") && value > limit.Max+limit.Max/tooMuch {
				e.ender.grace = 0
			}
		}
	}
}

// checkKilled begins the end if the kernel has killed for the limit that it holds.
func (e *enforcer) checkKilled() {
	most := e.options.hard(cgroupField)
	if math.IsInf(most, 1) || !e.group.killedForMemory(uint64(min(most, mostHeld))) {
		return
	}
	_, peak, _ := e.group.memory()
	for i, limit := range e.options.Limits {
		if limit.Field == cgroupField && limit.Max == most {
			e.excesses[i] = excess{limit, max(e.excesses[i].peak, float64(peak))}
		}
	}
	e.ender.begin(time.Now())
	e.ender.grace = 0
}
