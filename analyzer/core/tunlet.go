// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// tunlet is what the core knows of a tunlet.
type tunlet struct {
	name     string
	info     *attunev1.DescribeResponse
	alive    bool
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
	t.minGain = cmp.Or(t.minGain, defaultMinGain)
	t.maxTries = cmp.Or(t.maxTries, defaultMaxTries)
	t.knobs = map[string]*attunev1.Knob{}
	for _, k := range info.GetKnobs() {
		t.knobs[k.GetName()] = k
	}
	return t
}

// gone notes that a tunlet has ended, and returns it; nil: it was never heard of.
func (all tunlets) gone(name string) *tunlet {
	t := all[name]
	if t != nil {
		t.alive = false
	}
	return t
}

// known returns the tunlet of that name, made when it is new: one that has not been
// started yet.
func (all tunlets) known(name string) *tunlet {
	if all[name] == nil {
		all[name] = &tunlet{name: name, info: &attunev1.DescribeResponse{Name: name}}
	}
	return all[name]
}
