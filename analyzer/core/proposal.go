// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// proposal is one proposal on its way.
type proposal struct {
	number  uint64 // in which they came; 0: nobody has been told of it
	touched bool   // it is among those that Changed will return
	times   int    // it was refused when it came; 0: it was not
	tunlet  *tunlet
	spec    *attunev1.Proposal
	advice  string // see adviceID
	exact   string // see exactID
	state   State
	reason  string
	changes changes
	closed  bool // kept, and all its processes or the session have ended

	proposedAt time.Duration
	readyAt    time.Duration // its turn came; 0: not yet
	sentAt     time.Duration
	appliedAt  time.Duration // last of its changes took effect
	doneAt     time.Duration // verdict, or end
	deadline   time.Duration // of the state it is in
	pace       float64       // of the slower side of its trial so far: with a change samples may be farther between, or without

	applyRequest, undoRequest string
	withdrawn                 cause // of an undo as soon as it is applied; zero: there is none

	trial     trial.Trial      // whether it gains
	suggested attunev1.Verdict // while its tunlet is asked

	canary *proposal // what of it is tried first; nil: nothing
	whole  *proposal // whose canary it is; nil: nobody's

	aheadUntil time.Duration // it had to wait for its canary, or a sibling's trial

	kin     kinKey    // the same change in other processes of its program; zero: not known
	follows *proposal // the sibling whose verdict it takes over if it can be watched; nil: it is tried itself
	awaits  bool      // it waits for a sibling's trial

	displaced []*proposal // kept ones that had a knob of it
	gaveUp    changes     // what it had when it made room, with its canary's
	again     *proposal   // what it comes back as, of which its tunlet hears when it is undone; nil: nothing, or told
	returned  bool        // it had been kept, and made room once: what was tried since does not forbid it

	splits int // parts of it that were withdrawn alone

	adoptedGain float64 // as an earlier session measured it; 0: unknown

	undoing      undoing
	blameless    bool // it had been judged good, or has lost a change, also in its first try: no try is counted, no knob rests
	inconclusive bool // broken off, or not measurable: not known to be useless
	counted      bool // as a try without success
}

// undoing is how a proposal is taken back.
type undoing struct {
	to      State // state after it
	reason  string
	tries   int           // without success
	retryAt time.Duration // 0: none due
}

// cause is why a proposal is taken back without a verdict. The zero value is none.
type cause struct {
	text string
	end  bool // the session ends, which may leave what was judged good
}

// change is one change of a proposal.
type change struct {
	proposal *proposal
	spec     *attunev1.Change
	action   string
	result   *attunev1.ActionResult // last answer; nil: none
	outcome  attunev1.Outcome
	at       time.Duration // when it took effect, the latest time
	first    time.Duration // and the first time
	undoneAt time.Duration
}

// changes are those of one proposal, in the order in which they are made.
type changes []*change

// inForce reports whether the change is in force as far as is known.
func (ch *change) inForce() bool {
	return ch.outcome == attunev1.Outcome_OUTCOME_APPLIED
}

// knob returns what the change is made to.
func (ch *change) knob() knob { return knob{ch.spec.GetKnob(), ch.spec.GetProcess()} }

// final reports whether nothing more will happen to p.
func (p *proposal) final() bool {
	return p.state >= StateRefused || p.state == StateKept && p.closed
}

// experiment reports whether p changes its processes now without being judged.
func (p *proposal) experiment() bool {
	switch p.state {
	case StateApplying, StateJudging, StateAsking, StateTurning, StateUndoing:
		return true
	}
	return false
}

// inLine reports whether p waits for its turn.
func (p *proposal) inLine() bool { return p.state == StateWaiting && !p.awaits }

// inPlay reports whether p has something in force, or is about to.
func (p *proposal) inPlay() bool { return !p.final() && p.state != StateUndoing }

// overlaps reports whether p and q would be measured as one: they share a
// process, or a tunlet's scope.
func (p *proposal) overlaps(q *proposal) bool {
	return p.tunlet == q.tunlet && p.spec.GetScope() == q.spec.GetScope() || p.meets(q)
}

// meets reports whether p and q share a process.
func (p *proposal) meets(q *proposal) bool {
	for _, a := range p.changes {
		for _, b := range q.changes {
			if a.spec.GetProcess() == b.spec.GetProcess() {
				return true
			}
		}
	}
	return false
}

// name returns how its tunlet calls p.
func (p *proposal) name() name { return name{p.tunlet.name, p.spec.GetId()} }

// cedeChanges makes some changes of p those of q, which becomes about nothing else.
func (p *proposal) cedeChanges(q *proposal, part changes) {
	q.changes, q.spec.Changes = part, nil
	for _, ch := range part {
		ch.proposal = q
		q.spec.Changes = append(q.spec.Changes, ch.spec)
	}
	p.changes = slices.DeleteFunc(p.changes, func(ch *change) bool { return ch.proposal == q })
}

// area returns what p's objective is about.
func (p *proposal) area() area { return area{p.tunlet.name, p.spec.GetScope()} }

// tried returns the changes that p was tried with: of a whole that was never made those of
// its canary.
func (p *proposal) tried() changes {
	switch {
	case p.canary == nil:
		return p.changes
	case p.sentAt == 0:
		return p.canary.changes
	}
	return slices.Concat(p.canary.changes, p.changes)
}

// standing returns the changes of p, and of its canary if that is in play.
func (p *proposal) standing() changes {
	if p.canary == nil || !p.canary.inPlay() {
		return p.changes
	}
	return slices.Concat(p.canary.changes, p.changes)
}

// asProposed returns p as its tunlet knows it: of a canary the whole.
func (p *proposal) asProposed() *proposal { return cmp.Or(p.whole, p) }

// useless reports whether p was measured to the end and brought no gain.
func (p *proposal) useless() bool {
	measured := p.trial.Judgement != nil && p.trial.Judgement.Before.Samples > 0 && !p.inconclusive
	return p.state == StateUndone && !p.blameless && measured
}

// good says that p was judged good and that nobody takes it back: it may be being compared
// again.
func (p *proposal) good() bool {
	return p.state == StateKept || p.trial.IsRetrial() && p.state != StateUndoing && p.withdrawn == cause{}
}

// held describes a change of p.
func (p *proposal) held(ch *change) Held {
	return Held{
		ID: ch.spec.GetId(), Process: ch.spec.GetProcess(), Knob: ch.spec.GetKnob(),
		Tunlet: p.tunlet.name, Action: ch.action, Kept: p.state == StateKept, Gain: p.gain(),
	}
}

// gain returns the measured gain of p, as a finite ratio; 0: unknown.
func (p *proposal) gain() float64 {
	switch {
	case p.trial.Judgement == nil:
		return p.adoptedGain
	case p.trial.Judgement.Few || math.IsInf(p.trial.Judgement.Gain, 0) || math.IsNaN(p.trial.Judgement.Gain):
		return 0
	}
	return p.trial.Judgement.Gain
}

// outdone returns the proposal that p took a knob from and that gained more than
// p does, by measurement, if priority does not decide between them; nil: none.
func (p *proposal) outdone() *proposal {
	for _, o := range p.displaced {
		if p.tunlet.info.GetPriority() == o.tunlet.info.GetPriority() && o.gain() > p.gain() {
			return o
		}
	}
	return nil
}

// awaitsCanary reports whether p has to wait for what is tried before it.
func (p *proposal) awaitsCanary() bool {
	return p.canary != nil && !p.canary.final() && p.canary.state != StateKept
}
