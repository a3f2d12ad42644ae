// SPDX-License-Identifier: Apache-2.0

package core

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Core is the state machine: it has what decides, and tells each what happened. The
// zero value is not usable; see New.
type Core struct {
	*transcript
	own        *ownObjective
	tunlets    tunlets
	processes  *processes
	owners     *owners
	restraints *restraints
	known      knowledge
	line       *line
	archive    *archive
	requests   *requests
	refusals   *refusals
	stopped    stop // the latest one

	ends        *endings
	undoer      *undoer
	judge       *judge
	applier     *applier
	outcomes    *outcomes
	canaries    *canaries
	admission   *admission
	withdrawals *withdrawals
}

// Step tells the core what happened and when, and returns what is to be done.
// Time never runs backwards: an earlier time than the last one counts as that. Time in which
// nobody called it although a proposal was on its way is nobody's, see stop.
func (c *Core) Step(at time.Duration, ev Event) []Command {
	if passed := c.begin(at); passed >= longestBeat && c.line.deciding() {
		c.stopped = stop{c.now - passed, c.now}
		c.line.postpone(passed - usualBeat)
	}
	c.take(ev)
	c.advance()
	return c.out
}

// take takes in what happened.
func (c *Core) take(ev Event) {
	switch ev := ev.(type) {
	case TunletReady:
		c.tunletReady(ev.Info)
	case TunletGone:
		c.tunletGone(ev)
	case ProcessStarted:
		c.processes.start(ev)
	case ProcessEnded:
		c.processEnded(ev.Process)
	case Propose:
		c.admission.propose(ev.Tunlet, ev.Proposal)
	case Withdraw:
		c.withdrawals.withdraw(ev)
	case Sample:
		c.sample(ev)
	case Measured:
		c.measured(ev)
	case Result:
		c.outcomes.noteResult(ev)
	case RequestDone:
		c.requestDone(ev.Request)
	case Verdict:
		c.verdict(ev)
	case Lapsed:
		c.outcomes.noteLapse(ev)
	case Knowledge:
		c.known.learn(ev.Known)
	case Adopt:
		c.admission.adopt(ev.Held)
	case Tick:
	case Finish:
		c.finish(ev)
	}
}

// advance does what time and order allow.
func (c *Core) advance() {
	for _, p := range c.line.matching(func(p *proposal) bool { return p.state != StateKept }) {
		switch p.state {
		case StateWaiting:
			c.applier.tryApply(p)
		case StateApplying:
			c.applier.checkApply(p)
		case StateJudging:
			if c.now >= p.deadline {
				c.judge.lookAtSamples(p, true)
			}
		case StateAsking:
			if c.now >= p.deadline {
				c.judge.resolve(p, attunev1.Verdict_VERDICT_UNSPECIFIED, "no verdict from the tunlet in time")
			}
		case StateTurning:
			c.judge.checkTurning(p)
		case StateUndoing:
			c.undoer.checkUndo(p)
		}
	}
}

// tunletReady makes a tunlet known, or alive again.
func (c *Core) tunletReady(info *attunev1.DescribeResponse) {
	t := c.tunlets.ready(info)
	for _, p := range c.line.active {
		if p.tunlet == t && p.good() {
			p.trial.WatchFrom(c.now)
			c.remind(p)
		}
	}
}

// tunletGone takes back what a dead tunlet left unverified. What was proven stays,
// whether or not the tunlet comes back to report its objective; where it is being compared
// again, that ends by itself.
func (c *Core) tunletGone(ev TunletGone) {
	t := c.tunlets.gone(ev.Tunlet)
	for _, p := range c.line.snapshot() {
		if p.tunlet == t && !p.good() {
			c.undoer.takeBack(p, cause{text: "tunlet gone: " + ev.Reason})
		}
	}
}

// processEnded ends the changes of a process with it, and forgets it.
func (c *Core) processEnded(handle uint64) {
	if !c.processes.end(handle) {
		return
	}
	c.restraints.forgetProcess(handle)
	for _, p := range c.line.snapshot() {
		touched := false
		for _, ch := range p.changes {
			if ch.spec.GetProcess() == handle {
				touched = true
				ch.outcome = attunev1.Outcome_OUTCOME_GONE
				c.owners.free(ch.knob())
			}
		}
		if touched {
			c.touch(p)
		}
		if touched && c.processes.allEnded(p) {
			c.ends.endWithProcesses(p)
		}
	}
}

// sample takes one value of an objective.
func (c *Core) sample(ev Sample) {
	t := c.tunlets[ev.Tunlet]
	if t == nil || attunev1.CheckObjective(ev.Value) != nil {
		return
	}
	if c.stopped.skip(t.scopes.Of(ev.Scope), ev.At) {
		return
	}
	t.scopes.Add(ev.Scope, c.now, ev.At, ev.Value)
	if c.own != nil {
		return
	}
	judged := func(p *proposal) bool { return p.tunlet == t && p.spec.GetScope() == ev.Scope }
	for _, p := range c.line.matching(judged) {
		c.judge.heed(p)
	}
}

// measured takes one value of the owner's objective.
func (c *Core) measured(ev Measured) {
	if c.own == nil || attunev1.CheckObjective(ev.Value) != nil {
		return
	}
	if c.stopped.skip(&c.own.history, ev.At) {
		return
	}
	c.own.history.Add(ev.At, ev.Value)
	for _, p := range c.line.snapshot() {
		c.judge.heed(p)
	}
}

// verdict takes a tunlet's answer.
func (c *Core) verdict(ev Verdict) {
	if p := c.archive.find(ev.Tunlet, ev.Proposal); p != nil && p.state == StateAsking {
		c.judge.resolve(p, ev.Verdict, ev.Reason)
	}
}

// requestDone closes a request.
func (c *Core) requestDone(id string) {
	p := c.requests.close(id)
	switch {
	case p == nil:
	case p.state == StateApplying && id == p.applyRequest:
		c.applier.finishApply(p)
	case p.state == StateUndoing && id == p.undoRequest:
		c.undoer.finishUndo(p)
	case p.state == StateTurning && id == p.undoRequest:
		c.judge.finishTakeBack(p)
	}
}

// finish ends the session.
func (c *Core) finish(ev Finish) {
	c.admission.finish()
	c.undoer.finish(ev.Keep)
	for _, p := range c.line.snapshot() {
		c.undoer.takeBack(p, atEnd)
	}
}

// aftermath does for others what the end of p, which does not stay, means to them.
func (c *Core) aftermath(p *proposal, to State, reason string) {
	if p.whole != nil {
		c.canaries.followCanary(p, to, reason)
	}
	c.canaries.recallCanary(p, reason)
	c.admission.giveBack(p)
}
