// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// rivals returns the proposals that have to make room for p, or says why p
// cannot have one of its knobs now. Nobody makes room while being tried: what was
// begun is measured to the end.
func (c *Core) rivals(p *proposal) (rivals []*proposal, reason string) {
	for _, ch := range p.changes {
		k := ch.knob()
		for _, o := range c.owners.among(k) {
			switch {
			case slices.Contains(rivals, o):
			case c.yields(o, p):
				rivals = append(rivals, o)
			default:
				return nil, fmt.Sprintf("knob %s of process %d belongs to proposal %s of tunlet %s",
					k.name, k.process, o.spec.GetId(), o.tunlet.name)
			}
		}
	}
	return rivals, ""
}

// yields reports whether o, which has a knob that p wants, makes room for it: to
// a tunlet of higher priority, and to one of the same priority whose model
// promises more than o was measured to gain, once.
func (c *Core) yields(o, p *proposal) bool {
	mine, theirs := p.tunlet.info.GetPriority(), o.tunlet.info.GetPriority()
	if p.tunlet == o.tunlet || theirs > mine || o.canary != nil || o.whole != nil {
		return false
	}
	switch o.state {
	case StateWaiting:
		return mine > theirs
	case StateKept:
		promises := o.gain() > 0 && c.known.promised(p) > o.gain()*(1+p.tunlet.minGain)
		return mine > theirs || promises && !o.challenged
	}
	return false
}

// displace makes the rivals of p give their knobs up. Those that were kept come
// back if p does not stay.
func (c *Core) displace(p *proposal, rivals []*proposal) {
	for _, o := range rivals {
		reason := fmt.Sprintf("its knob goes to tunlet %s, which promises more", p.tunlet.name)
		if p.tunlet.info.GetPriority() > o.tunlet.info.GetPriority() {
			reason = fmt.Sprintf("its knob goes to tunlet %s, of higher priority", p.tunlet.name)
		}
		if o.state == StateKept {
			p.displaced = append(p.displaced, o)
		}
		c.takeBack(o, reason)
	}
}

// giveBack proposes again what p took the knobs of, since p does not stay. It is
// tried again like any other proposal.
func (c *Core) giveBack(p *proposal) {
	displaced := p.displaced
	p.displaced = nil
	for _, o := range displaced {
		if c.finishing || !o.tunlet.alive {
			continue
		}
		again := c.anew(o)
		if len(again.changes) == 0 {
			continue // ended with its processes
		}
		if reason := cmp.Or(c.malformed(again), c.forbidden(again)); reason != "" {
			c.emit(Record{At: c.now, Kind: "refused", Reason: "not tried again: " + reason, Proposal: again.view()})
			continue
		}
		c.admit(again)
	}
}

// anew returns a new proposal of what o had in force when it made room, as far as
// the processes still live. What was withdrawn of it before does not come back.
func (c *Core) anew(o *proposal) *proposal {
	spec := proto.CloneOf(o.spec)
	spec.Changes = nil
	for _, ch := range o.changes {
		if c.processes.runs(ch.spec.GetProcess()) {
			spec.Changes = append(spec.Changes, proto.CloneOf(ch.spec))
		}
	}
	again := c.newProposal(o.tunlet, spec)
	again.challenged = true
	return again
}
