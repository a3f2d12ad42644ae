// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// withdraw takes a proposal back at its tunlet's wish.
func (c *Core) withdraw(ev Withdraw) {
	p := c.archive.find(ev.Tunlet, ev.Proposal)
	if p == nil || p.final() {
		return
	}
	reason := "withdrawn by the tunlet: " + ev.Reason
	if p.state != StateKept || len(ev.Processes) == 0 {
		c.takeBack(p, reason)
		c.recallCanary(p, reason)
		return
	}
	for _, whole := range []*proposal{p, p.canary} {
		if whole == nil || whole.state != StateKept {
			continue
		}
		if part := c.split(whole, ev.Processes); part != nil {
			c.takeBack(part, reason)
		}
	}
}

// split makes a proposal of its own, kept like p, of p's changes in the given
// processes, and returns it: p itself if nothing of p in force would be left,
// nil if nothing of p in force is in them.
func (c *Core) split(p *proposal, processes []uint64) *proposal {
	var part, rest []*change
	inForce := 0 // of the rest
	for _, ch := range p.changes {
		switch {
		case ch.inForce() && slices.Contains(processes, ch.spec.GetProcess()):
			part = append(part, ch)
			continue
		case ch.inForce():
			inForce++
		}
		rest = append(rest, ch)
	}
	switch {
	case len(part) == 0:
		return nil
	case inForce == 0:
		return p
	}
	p.splits++
	q := *p
	q.canary, q.whole, q.displaced = nil, nil, nil
	q.spec = proto.CloneOf(p.spec)
	q.spec.Id = fmt.Sprintf("%s/%d", p.spec.GetId(), p.splits)
	q.spec.Changes = nil
	q.number, q.touched = 0, false
	q.changes, p.changes = part, rest
	c.touch(p)
	c.touch(&q)
	for _, ch := range part {
		ch.proposal = &q
		q.spec.Changes = append(q.spec.Changes, ch.spec)
		c.owners.take(ch.knob(), &q)
	}
	c.line.join(&q)
	return &q
}

// takeBack ends a proposal whatever its state, without a measured verdict. A
// kept one that is taken back when the session ends stays kept in the report:
// it was good until then.
func (c *Core) takeBack(p *proposal, reason string) {
	switch p.state {
	case StateWaiting:
		c.conclude(p, StateRefused, reason)
	case StateApplying, StateTurning:
		p.withdrawn = reason
	case StateJudging, StateAsking:
		c.breakOff(p, reason)
	case StateKept:
		if c.finishing && c.cfg.Keep {
			c.close(p)
			c.record("left", p, "the session ended")
			return
		}
		if c.finishing {
			c.undo(p, StateKept, "the session ended")
			return
		}
		p.blameless = true
		c.undo(p, StateUndone, reason)
	case StateUndoing:
		c.hastenUndo(p)
	}
}

// breakOff takes back what is being judged. That proves nothing about it; one that
// had been kept was good until then.
func (c *Core) breakOff(p *proposal, reason string) {
	p.trial.breakOff()
	switch {
	case c.finishing && p.again():
		c.undo(p, StateKept, reason)
	case c.finishing:
		c.undo(p, StateEnded, "the session ended before it could be judged")
	default:
		p.inconclusive = true
		p.blameless = p.blameless || p.again()
		c.undo(p, StateUndone, reason)
	}
}

// undo asks for the original values of what is in force; to is the state that
// the proposal ends in.
func (c *Core) undo(p *proposal, to State, reason string) {
	if len(p.inForce()) == 0 {
		c.conclude(p, to, reason)
		return
	}
	if p.final() {
		c.line.join(p)
		c.archive.revive(p)
	}
	p.state, p.undoTo, p.undoReason = StateUndoing, to, reason
	p.undoRetryAt = 0
	c.record("undoing", p, reason)
	c.requests.undo(p, reason)
}

// undone ends an undo, or has it tried again later.
func (c *Core) undone(p *proposal) {
	left := p.inForce()
	if len(left) == 0 {
		c.conclude(p, p.undoTo, p.undoReason)
		return
	}
	p.undoRetries++
	if p.undoRetries < undoTries {
		p.undoRetryAt = c.now + undoPause
		c.hastenUndo(p)
		return
	}
	c.conclude(p, StateFailed, fmt.Sprintf("%s; %d of its changes could not be undone: %s", p.undoReason, len(left), p.reason))
}

// hastenUndo spares a pause before the next attempt at the end of a session,
// which waits for the answers but not for pauses.
func (c *Core) hastenUndo(p *proposal) {
	if c.finishing && p.undoRetryAt > 0 {
		p.undoRetryAt = max(c.now, 1)
	}
}

// checkUndo repeats an undo that failed, and ends one that nobody answers.
func (c *Core) checkUndo(p *proposal) {
	switch {
	case p.undoRetryAt > 0:
		if c.now >= p.undoRetryAt {
			c.undo(p, p.undoTo, p.undoReason)
		}
	case c.now >= p.deadline:
		c.requests.close(p.undoRequest)
		p.reason = "no answer from the controller"
		c.undone(p)
	}
}

// close ends a kept proposal with its processes, or with the session.
func (c *Core) close(p *proposal) {
	p.closed = true
	c.settle(p)
}

// conclude ends a proposal, starts the rest of its knobs where it brought no
// gain, and tells everybody.
func (c *Core) conclude(p *proposal, to State, reason string) {
	kind := to.String()
	if to == StateKept { // taken back only because the session ended
		kind, p.closed = "restored", true
	} else {
		p.doneAt, p.reason = c.now, reason
	}
	p.state = to
	if to == StateFailed || to == StateUndone && !p.blameless {
		if !p.counted && p.whole == nil { // an answer may come after the end, and end it again
			p.counted = true
			c.restraints.failed(p)
			c.siblings.tell(p)
		}
		c.restraints.rest(p, c.now)
	}
	c.settle(p)
	c.record(kind, p, reason)
	c.notify(p, reason)
	c.aftermath(p, to, reason)
}

// aftermath does for others what the end of p means to them.
func (c *Core) aftermath(p *proposal, to State, reason string) {
	if to == StateKept {
		return
	}
	if p.whole != nil {
		c.afterCanary(p, to, reason)
	}
	c.recallCanary(p, reason)
	c.giveBack(p)
}

// settle moves a proposal from the active to the finished.
func (c *Core) settle(p *proposal) {
	for _, ch := range p.changes {
		k := ch.knob()
		if c.owners.of[k] == p {
			c.owners.free(k)
		}
	}
	c.line.leave(p)
	c.archive.finish(p)
}
