// SPDX-License-Identifier: Apache-2.0

package core

import "slices"

// maxKin bounds the changes of which is remembered what they brought to a program:
// a job may start any number of programs. Others are tried in each process.
const maxKin = 4096

// kinKey names a change, wherever in a program it is made.
type kinKey struct{ advice, program string }

// kin is the same change in the processes of one program, each with an objective
// of its own: siblings. It is tried in one of them, and the others take over the
// verdict. What is kept in one of these is watched as if it had been tried there,
// so that one that differs from the others gets its own trial.
type kin struct {
	// first is the proposal that is being tried, or that was decided about last.
	first *proposal
	// useless counts the trials to the end, since the last gain, that brought none.
	useless int
}

// kinOf returns what p is a part of; nil if nobody can take over from it: it is
// about several processes or a place in one, or has to be measured, because it took
// a knob from somebody.
func (c *Core) kinOf(p *proposal) *kin {
	if p.kin != nil {
		return p.kin
	}
	process := p.changes[0].spec.GetProcess()
	pr := c.processes[process]
	if pr == nil || pr.program == "" || p.whole != nil || p.canary != nil || len(p.displaced) > 0 {
		return nil
	}
	if slices.ContainsFunc(p.changes, func(ch *change) bool {
		k := knob{ch.spec.GetKnob(), process}
		return ch.spec.GetProcess() != process || k != k.whole()
	}) {
		return nil
	}
	key := kinKey{p.advice, pr.program}
	if c.kin[key] == nil && len(c.kin) < maxKin {
		c.kin[key] = &kin{first: p}
	}
	p.kin = c.kin[key]
	return p.kin
}

// awaitsSibling reports whether p has to wait for what is tried in a sibling, or
// has been refused for what came of that. If it was kept there, p follows it.
func (c *Core) awaitsSibling(p *proposal) bool {
	p.awaits, p.follows = false, nil
	k := c.kinOf(p)
	if k == nil || k.first == p || k.first.spec.GetScope() == p.spec.GetScope() {
		return false
	}
	first := k.first
	switch {
	case first.state == StateKept:
		p.follows = first
	case !first.final():
		p.awaits, p.aheadUntil = true, c.now
	case first.useless() && (c.now < first.doneAt+cooldown || k.useless >= p.tunlet.maxTries):
		c.conclude(p, StateRefused, "tried in another process of the program: "+first.reason)
		return true
	default:
		k.first = p
	}
	return p.awaits
}

// inLine reports whether p waits for its turn.
func (p *proposal) inLine() bool { return p.state == StateWaiting && !p.awaits }

// keepLike keeps p, which is in force, because a sibling's trial ended so.
func (c *Core) keepLike(p *proposal) {
	p.adoptedGain = p.follows.gain()
	c.keep(p, "tried in another process of the program: "+p.follows.reason)
}

// tellSiblings notes the verdict on p for those that come later.
func (c *Core) tellSiblings(p *proposal) {
	switch {
	case p.kin == nil:
	case p.useless():
		p.kin.first = p
		p.kin.useless++
	case p.state == StateKept && p.kin.first == p:
		p.kin.useless = 0
	}
}
