// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// rest is a knob that a tunlet may not touch for a while.
type rest struct {
	tunlet string
	knob   knob
}

// try is a try that did not end in a kept change: the processes that it was made in and that
// have not ended.
type try map[uint64]bool

// restraints are what experience forbids: what was tried too often or too recently,
// and what somebody has set by hand.
type restraints struct {
	processes *processes

	tries map[area][]try // until their processes have ended: others are another program
	rests map[rest]time.Duration
	hands map[knob]bool // changed by hand: nobody else touches them
}

func newRestraints(all *processes) *restraints {
	return &restraints{processes: all, tries: map[area][]try{}, rests: map[rest]time.Duration{}, hands: map[knob]bool{}}
}

// countFailure counts a try without success, but not for processes that have ended: nobody
// would ever forget them.
func (r *restraints) countFailure(p *proposal) {
	t := try{}
	for _, ch := range p.tried() {
		if r.processes.runs(ch.spec.GetProcess()) {
			t[ch.spec.GetProcess()] = true
		}
	}
	if len(t) > 0 {
		r.tries[p.area()] = append(r.tries[p.area()], t)
	}
}

// restKnobs lets the knobs of p rest after a try without success, likewise.
func (r *restraints) restKnobs(p *proposal, now time.Duration) {
	for _, ch := range p.changes {
		if r.processes.runs(ch.spec.GetProcess()) {
			r.rests[rest{p.tunlet.name, ch.knob()}] = now + cooldown
		}
	}
}

// leaveKnob has a knob left alone that somebody has set by hand.
func (r *restraints) leaveKnob(k knob) { r.hands[k] = true }

// forgetProcess forgets a process.
func (r *restraints) forgetProcess(handle uint64) {
	maps.DeleteFunc(r.rests, func(r rest, _ time.Duration) bool { return r.knob.process == handle })
	maps.DeleteFunc(r.hands, func(k knob, _ bool) bool { return k.process == handle })
	for a, tries := range r.tries {
		for _, t := range tries {
			delete(t, handle)
		}
		r.tries[a] = slices.DeleteFunc(tries, func(t try) bool { return len(t) == 0 })
	}
	maps.DeleteFunc(r.tries, func(_ area, tries []try) bool { return len(tries) == 0 })
}

// exhausted says why nothing more is tried in the processes of p; empty: it may be. What was
// tried in other processes of its scope says nothing: a scope may be a node, with several
// programs.
func (r *restraints) exhausted(p *proposal) string {
	n := 0
	for _, t := range r.tries[p.area()] {
		if slices.ContainsFunc(p.changes, func(ch *change) bool { return t[ch.spec.GetProcess()] }) {
			n++
		}
	}
	if n >= p.tunlet.maxTries && !p.returned {
		return fmt.Sprintf("%d tries without success in scope %q", n, p.spec.GetScope())
	}
	return ""
}

// restStep is how exactly people are told how long a knob rests.
const restStep = 100 * time.Millisecond

// untouchable says why a knob of p may not be touched now; empty: all may be.
func (r *restraints) untouchable(p *proposal, now time.Duration) string {
	for _, ch := range p.changes {
		k := ch.knob()
		if r.hands[k] || r.hands[k.whole()] {
			return fmt.Sprintf("knob %s of process %d was changed by hand, and stays as it is", k.name, k.process)
		}
		if until := r.rests[rest{p.tunlet.name, k}]; now < until && !p.returned {
			return fmt.Sprintf("knob %s of process %d rests for another %v after a try without success",
				k.name, k.process, max(restStep, (until-now).Round(restStep)))
		}
	}
	return ""
}
