// SPDX-License-Identifier: Apache-2.0

package core

import (
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// tunlet is what the core knows of a tunlet.
type tunlet struct {
	name     string
	info     *attunev1.DescribeResponse
	alive    bool
	goneAt   time.Duration
	minGain  float64
	maxTries int
	lower    bool // lower is better
	knobs    map[string]*attunev1.Knob
	scopes   trial.Scopes
}

// tunlets are those that were heard of, by name.
type tunlets map[string]*tunlet

// ready makes a tunlet known, or alive again.
func (all tunlets) ready(info *attunev1.DescribeResponse) *tunlet {
	t := all.known(info.GetName())
	t.info, t.alive = info, true
	t.scopes = trial.Scopes{}
	t.lower = info.GetObjective().GetLowerIsBetter()
	t.minGain, t.maxTries = info.GetMinGain(), int(info.GetMaxTries())
	def(&t.minGain, defaultMinGain)
	def(&t.maxTries, defaultMaxTries)
	t.knobs = map[string]*attunev1.Knob{}
	for _, k := range info.GetKnobs() {
		t.knobs[k.GetName()] = k
	}
	return t
}

// gone notes that a tunlet has ended, and returns it; nil: it was never heard of.
func (all tunlets) gone(name string, now time.Duration) *tunlet {
	t := all[name]
	if t != nil {
		t.alive, t.goneAt = false, now
	}
	return t
}

// expected returns a tunlet that has not been started yet, unless it has: from now on
// it is waited for as if it had ended.
func (all tunlets) expected(name string, now time.Duration) *tunlet {
	if t := all[name]; t != nil {
		return t
	}
	t := all.known(name)
	t.info, t.goneAt = &attunev1.DescribeResponse{Name: name}, now
	return t
}

// known returns the tunlet of that name, made when it is new.
func (all tunlets) known(name string) *tunlet {
	if all[name] == nil {
		all[name] = &tunlet{name: name}
	}
	return all[name]
}

// missing reports whether a tunlet has ended and did not come back in time.
func (t *tunlet) missing(now time.Duration) bool { return !t.alive && now >= t.goneAt+tunletGrace }
