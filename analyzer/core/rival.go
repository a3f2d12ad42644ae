// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
)

// rivalry is about knobs that have an owner already: who makes room for whom.
type rivalry struct {
	owners *owners
	known  knowledge
	undoer *undoer

	canaries *canaries
}

// rivalsOf returns the proposals that have to make room for p, or says why p
// cannot have one of its knobs now. Nobody makes room while being tried: what was
// begun is measured to the end.
func (r *rivalry) rivalsOf(p *proposal) (rivals []*proposal, reason string) {
	for _, ch := range p.changes {
		k := ch.knob()
		for _, o := range r.owners.among(k) {
			o = o.asProposed()
			switch {
			case slices.Contains(rivals, o):
			case r.yields(o, p):
				rivals = append(rivals, o)
			default:
				return nil, fmt.Sprintf("knob %s of process %d belongs to proposal %s of tunlet %s%s",
					k.name, k.process, o.spec.GetId(), o.tunlet.name, ownRemedy(o, p))
			}
		}
	}
	return rivals, ""
}

// ownRemedy says what a tunlet can do about a knob that is its own already.
func ownRemedy(o, p *proposal) string {
	if o.tunlet != p.tunlet {
		return ""
	}
	return "; when that is kept, name it in Replaces, or withdraw it first"
}

// yields reports whether o, which has a knob that p wants, makes room for it: to
// a tunlet of higher priority, and to one of the same priority whose model
// promises more than o was measured to gain, once. What was kept makes room to what its
// own tunlet has replace it, with its canary.
func (r *rivalry) yields(o, p *proposal) bool {
	mine, theirs := p.tunlet.info.GetPriority(), o.tunlet.info.GetPriority()
	switch {
	case p.tunlet == o.tunlet:
		return o.state == StateKept && !o.awaitsCanary() && p.spec.GetReplaces() == o.spec.GetId()
	case theirs > mine || o.canary != nil:
		return false
	}
	switch o.state {
	case StateWaiting:
		return mine > theirs
	case StateKept:
		promises := o.gain() > 0 && r.known.promised(p) > o.gain()*(1+p.tunlet.minGain)
		return mine > theirs || promises && !o.returned
	}
	return false
}

// displace makes the rivals of p give their knobs up. Those that were kept come
// back if p does not stay.
func (r *rivalry) displace(p *proposal, rivals []*proposal) {
	for _, o := range rivals {
		reason := fmt.Sprintf("its knob goes to tunlet %s, which promises more", p.tunlet.name)
		switch {
		case p.tunlet == o.tunlet:
			reason = fmt.Sprintf("replaced by %s", p.spec.GetId())
		case p.tunlet.info.GetPriority() > o.tunlet.info.GetPriority():
			reason = fmt.Sprintf("its knob goes to tunlet %s, of higher priority", p.tunlet.name)
		}
		if o.state == StateKept {
			o.gaveUp = o.standing()
			p.displaced = append(p.displaced, o)
		}
		r.undoer.takeBack(o, cause{text: reason})
		r.canaries.recallCanary(o, reason)
	}
}
