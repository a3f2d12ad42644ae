// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"
	"math"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxChanges bounds the changes of one proposal: one knob in each rank of
	// a large node, several times over.
	maxChanges = 4096
	// maxOpen bounds the proposals of one tunlet that are not final.
	maxOpen = 256
)

// propose admits, advises or refuses a proposal.
func (c *Core) propose(tunlet string, spec *attunev1.Proposal) {
	t := c.tunlets[tunlet]
	if t == nil || !t.alive {
		return
	}
	if old := c.archive.find(tunlet, spec.GetId()); old != nil && !old.final() {
		return // said again: it is on its way already
	}
	p := c.newProposal(t, spec)
	if reason := c.malformed(p); reason != "" {
		c.refusals.refuse(p, reason)
		return
	}
	switch c.cfg.Mode {
	case ModeTune:
		c.admit(p)
	case ModeAdvise:
		c.advise(p)
	default:
		c.refusals.refuse(p, "mode observe: nothing is changed")
	}
}

// newProposal wraps a proposal that nothing has been decided about.
func (c *Core) newProposal(t *tunlet, spec *attunev1.Proposal) *proposal {
	p := &proposal{tunlet: t, spec: spec, proposedAt: c.now}
	for _, s := range spec.GetChanges() {
		p.changes = append(p.changes, &change{proposal: p, spec: s, action: attunev1.ActionText(s.GetAction())})
	}
	p.advice, p.exact = c.adviceID(p), c.exactID(p)
	return p
}

// malformed says why a proposal can not be considered at all.
func (c *Core) malformed(p *proposal) string {
	switch {
	case p.spec.GetId() == "":
		return "the proposal has no id"
	case len(p.changes) == 0:
		return "the proposal changes nothing"
	case len(p.changes) > maxChanges:
		return fmt.Sprintf("the proposal has %d changes; at most %d are allowed", len(p.changes), maxChanges)
	case notRatio(p.spec.GetPredictedGain()):
		return fmt.Sprintf("the predicted gain is %v; it has to be a ratio, or 0 where none is predicted", p.spec.GetPredictedGain())
	case notRatio(p.spec.GetConfidence()):
		return fmt.Sprintf("the confidence is %v; it has to be from 0 to 1", p.spec.GetConfidence())
	}
	seen := map[knob]bool{}
	for _, ch := range p.changes {
		k := ch.knob()
		if seen[k] {
			return fmt.Sprintf("knob %s of process %d is named twice", k.name, k.process)
		}
		seen[k] = true
		if reason := c.badChange(p.tunlet, ch); reason != "" {
			return reason
		}
	}
	return ""
}

// notRatio reports whether v is negative, infinite or not a number: neither JSON nor
// the knowledge store can hold the latter two.
func notRatio(v float64) bool { return !(v >= 0) || math.IsInf(v, 1) }

// badChange says why a change is not acceptable from this tunlet.
func (c *Core) badChange(t *tunlet, ch *change) string {
	name := ch.spec.GetKnob()
	k := t.knobs[knob{name: name}.whole().name]
	switch {
	case ch.action == "":
		return fmt.Sprintf("knob %s: no action given", name)
	case k == nil:
		return fmt.Sprintf("knob %s is not among those the tunlet declares", name)
	case !c.processes.runs(ch.spec.GetProcess()):
		return fmt.Sprintf("process %d is not known, or has ended", ch.spec.GetProcess())
	}
	return outOfBounds(k, attunev1.DescribeAction(ch.spec.GetAction()).Value)
}

// admit lets a proposal wait for its turn, or refuses it.
func (c *Core) admit(p *proposal) {
	reason := c.forbidden(p)
	rivals, taken := c.rivals(p)
	if reason = cmp.Or(reason, taken); reason != "" {
		c.refusals.refuse(p, reason)
		return
	}
	c.displace(p, rivals)
	c.archive.number(p)
	c.archive.add(p)
	for _, ch := range p.changes {
		c.owners.take(ch.knob(), p)
	}
	c.record("proposed", p, p.spec.GetReason())
	if process := c.canaryProcess(p); process != 0 {
		c.sendAhead(p, process)
	}
	c.line.enqueue(p)
}

// forbidden says why policy does not allow a proposal now.
func (c *Core) forbidden(p *proposal) string {
	if c.finishing {
		return "the session is ending"
	}
	if reason := c.restraints.exhausted(p); reason != "" {
		return reason
	}
	if open := c.line.of(p.tunlet); open >= maxOpen {
		return fmt.Sprintf("%d proposals are open already", open)
	}
	return c.restraints.untouchable(p, c.now)
}
