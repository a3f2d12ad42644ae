// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// defaultSafePoint is the controller's own timeout of a safe point.
	defaultSafePoint = 2 * time.Second
	// undoTries bounds the attempts to undo one proposal.
	undoTries = 3
	// undoPause lies between them.
	undoPause = time.Second
)

// tryApply sends a waiting proposal when its turn has come and its baseline is
// there, or waited for long enough. Without any sample it is refused: what
// cannot be judged is not tried on an application.
func (c *Core) tryApply(p *proposal) {
	if p.awaitsCanary() {
		return
	}
	if refused := c.siblings.await(p, c.now); refused != "" {
		c.conclude(p, StateRefused, refused)
		return
	}
	if p.awaits {
		return
	}
	if c.line.blocks(p) {
		p.readyAt = 0
		if c.now >= max(p.proposedAt, p.aheadUntil)+c.cfg.queueWait {
			c.conclude(p, StateRefused, fmt.Sprintf("other changes were under judgement for %v", c.cfg.queueWait))
		}
		return
	}
	if p.readyAt == 0 {
		p.readyAt = max(c.now, 1)
	}
	p.quietFrom = c.processes.quiet(p)
	switch n := len(p.baseline(c.objective(p), c.now)); {
	case n >= minSamples:
		c.apply(p)
	case c.now < p.readyAt+baselineWait:
	case n == 0:
		c.conclude(p, StateRefused, "no baseline: the objective has no sample from before the change")
	default:
		c.apply(p)
	}
}

// apply sends a proposal's changes.
func (c *Core) apply(p *proposal) {
	p.state = StateApplying
	c.record("applying", p, "")
	c.notify(p, "")
	c.requests.apply(p)
}

// result notes what became of a change. An answer that comes after the
// proposal was given up must not leave the change in force.
func (c *Core) result(ev Result) {
	ch := c.archive.changes[ev.Result.GetChangeId()]
	if ch == nil {
		return
	}
	p, outcome := c.touch(ch.proposal), ev.Result.GetOutcome()
	c.processes.disturb(c.now, p.area(), ch.spec.GetProcess())
	switch {
	case outcome == attunev1.Outcome_OUTCOME_OVERRIDDEN:
		c.overridden(ch, ev.Result)
	case outcome == attunev1.Outcome_OUTCOME_APPLIED:
		ch.result, ch.outcome = ev.Result, outcome
		ch.at = c.now
		if ev.At >= p.sentAt && ev.At <= c.now {
			ch.at = ev.At
		}
		def(&ch.first, ch.at)
		if p.final() {
			c.undo(p, p.state, "applied after the proposal was given up")
		}
	case outcome == attunev1.Outcome_OUTCOME_UNDONE || outcome == attunev1.Outcome_OUTCOME_GONE:
		ch.outcome, ch.undoneAt = outcome, c.now
	case p.state == StateUndoing || p.state == StateTurning:
		p.reason = ev.Result.GetReason() // still in force: asked again
	default:
		ch.result, ch.outcome = ev.Result, outcome
	}
}

// requestDone closes a request.
func (c *Core) requestDone(id string) {
	p := c.requests.close(id)
	switch {
	case p == nil:
	case p.state == StateApplying && id == p.applyRequest:
		c.applied(p)
	case p.state == StateUndoing && id == p.undoRequest:
		c.undone(p)
	case p.state == StateTurning && id == p.undoRequest:
		c.tookBack(p)
	}
}

// checkApply gives up on an apply request that nobody answers.
func (c *Core) checkApply(p *proposal) {
	if c.now >= p.deadline {
		c.requests.close(p.applyRequest)
		for _, ch := range p.changes {
			if ch.outcome == attunev1.Outcome_OUTCOME_UNSPECIFIED {
				ch.outcome = attunev1.Outcome_OUTCOME_APPLIED // nobody knows: undo it
			}
		}
		c.undo(p, StateFailed, "no answer from the controller in time")
	}
}

// applied starts the judgement, or undoes what a failed change left behind.
func (c *Core) applied(p *proposal) {
	first := c.now
	inForce := 0
	for _, ch := range p.changes {
		switch {
		case ch.inForce():
			inForce++
			first = min(first, ch.at)
			p.appliedAt = max(p.appliedAt, ch.at)
		case ch.outcome != attunev1.Outcome_OUTCOME_GONE:
			c.undo(p, StateFailed, p.failure())
			return
		}
	}
	switch {
	case inForce == 0:
		c.conclude(p, StateEnded, "the process ended before the change took effect")
	case p.turns != nil:
		c.changedSides(p, p.appliedAt)
	case p.withdrawn != "":
		c.undo(p, StateUndone, p.withdrawn)
	case p.changesNothing():
		c.undo(p, StateUndone, "every value was already what is asked for")
	default:
		c.startJudging(p, first)
		if p.follows != nil {
			c.keepLike(p)
		}
	}
}
