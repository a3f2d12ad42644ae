// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// startJudging begins the trial of a proposal that is in force. first is when the
// first of its changes took effect.
func (c *Core) startJudging(p *proposal, first time.Duration) {
	p.state = StateJudging
	p.deadline = c.now + judgeTimeout
	weakness := p.trial.begin(c.objective(p), p.sentAt, first, p.appliedAt)
	c.record("applied", p, weakness)
	c.notify(p, weakness)
}

// objective returns what p is judged by.
func (c *Core) objective(p *proposal) objective {
	return objective{
		history: p.tunlet.scopes.get(p.spec.GetScope()), lower: p.tunlet.lower, minGain: p.tunlet.minGain,
		promised: c.known.promised(p), apart: c.cfg.Apart,
	}
}

// look looks at the samples of p, for which the time is over or not.
func (c *Core) look(p *proposal, over bool) {
	was := p.judgement
	r := p.trial.look(c.objective(p), c.now, over)
	if p.judgement != was {
		c.touch(p)
	}
	c.follow(p, r)
}

// follow does what the trial of p asks for.
func (c *Core) follow(p *proposal, r ruling) {
	switch r.do {
	case changeSides:
		c.changeSides(p)
	case askToKeep:
		c.ask(p, attunev1.Verdict_VERDICT_KEEP)
	case askToUndo:
		c.ask(p, attunev1.Verdict_VERDICT_UNDO)
	case keepIt:
		c.keep(p, cmp.Or(r.reason, p.reason))
	case undoIt:
		c.undo(p, StateUndone, r.reason)
	case dropIt:
		p.inconclusive = true
		c.undo(p, StateUndone, r.reason)
	}
}

// ask asks the tunlet for its verdict, with what the core would say. It is not asked
// about canaries, of which it does not know.
func (c *Core) ask(p *proposal, suggested attunev1.Verdict) {
	p.state, p.suggested = StateAsking, suggested
	p.deadline = c.now + evaluateTimeout
	c.record("judged", p, p.judgement.text())
	if p.whole != nil {
		c.resolve(p, attunev1.Verdict_VERDICT_UNSPECIFIED, "")
		return
	}
	c.emit(AskEvaluate{Tunlet: p.tunlet.name, Request: &attunev1.EvaluateRequest{
		ProposalId: p.spec.GetId(),
		Before:     p.judgement.Before.proto(),
		After:      p.judgement.After.proto(),
		Suggested:  suggested,
	}})
}

// verdict takes a tunlet's answer.
func (c *Core) verdict(ev Verdict) {
	if p := c.archive.find(ev.Tunlet, ev.Proposal); p != nil && p.state == StateAsking {
		c.resolve(p, ev.Verdict, ev.Reason)
	}
}

// resolve does what follows from the tunlet's opinion of p.
func (c *Core) resolve(p *proposal, opinion attunev1.Verdict, reason string) {
	r := p.trial.resolve(opinion, reason)
	if r.do == lookOn {
		p.state, p.deadline = StateJudging, c.now+judgeTimeout
	}
	c.follow(p, r)
}

// keep ends the judgement of a proposal that stays. One that is not in force at
// the moment is made again first.
func (c *Core) keep(p *proposal, reason string) {
	if o := p.outdone(); o != nil {
		c.undo(p, StateUndone, fmt.Sprintf("gains less than the %.3gx of tunlet %s: %s", o.gain(), o.tunlet.name, p.judgement.text()))
		return
	}
	p.displaced = nil
	was := p.turns
	if was != nil && !was.on {
		was.proven = reason
		c.changeSides(p)
		return
	}
	p.state = StateKept
	if p.trial.keep(c.now) {
		c.record("kept", p, reason)
		p.judgement = was.judged
		return
	}
	p.reason, p.doneAt = reason, c.now
	if p.whole != nil {
		p.whole.aheadUntil = c.now
		c.processes.disturbArea(c.now, p.whole.area())
	}
	c.siblings.tell(p)
	c.record("kept", p, reason)
	c.notify(p, reason)
}

// watch looks after a kept change. What others try meanwhile says nothing of it.
func (c *Core) watch(p *proposal) {
	if !p.trial.watched() {
		return
	}
	if c.line.disturbs(p) {
		p.watchFrom = c.now + settleTime
		return
	}
	c.follow(p, p.trial.watch(c.objective(p), c.now))
}

// changeSides begins the next turn of a trial: takes the change back, or makes it
// again.
func (c *Core) changeSides(p *proposal) {
	t := p.turns
	t.changeSides()
	if t.on {
		c.reapply(p)
		return
	}
	p.state = StateTurning
	c.record("turning", p, fmt.Sprintf("taken back to compare, turn %d", t.number))
	c.requests.undo(p, "to compare with and without it")
}

// reapply makes the changes of p again.
func (c *Core) reapply(p *proposal) {
	reason := fmt.Sprintf("made again to compare, turn %d", p.turns.number)
	if p.turns.proven != "" {
		reason = "made again to stay"
	}
	p.appliedAt = 0
	for _, ch := range p.changes {
		if ch.outcome == attunev1.Outcome_OUTCOME_UNDONE {
			ch.outcome = attunev1.Outcome_OUTCOME_UNSPECIFIED
		}
	}
	p.state = StateApplying
	c.record("turning", p, reason)
	c.requests.apply(p)
}

// changedSides begins to look at a turn when the request to change sides is answered.
// from is when the last change took effect.
func (c *Core) changedSides(p *proposal, from time.Duration) {
	t := p.turns
	switch {
	case t.proven != "":
		c.keep(p, t.proven)
		if p.withdrawn != "" { // meanwhile
			c.takeBack(p, p.withdrawn)
		}
		return
	case p.withdrawn != "":
		p.state = StateJudging
		c.takeBack(p, p.withdrawn)
		return
	}
	p.state, t.from = StateJudging, from+settleTime
	p.deadline = c.now + judgeTimeout
}

// tookBack answers the request that takes a change back for a turn.
func (c *Core) tookBack(p *proposal) {
	if len(p.inForce()) > 0 {
		c.undo(p, StateFailed, "it could not be taken back to compare")
		return
	}
	c.changedSides(p, c.now)
}

// checkTurning gives up on a request to take a change back that nobody answers.
func (c *Core) checkTurning(p *proposal) {
	if c.now >= p.deadline {
		c.requests.close(p.undoRequest)
		c.undo(p, StateFailed, "no answer from the controller in time")
	}
}
