// SPDX-License-Identifier: Apache-2.0

package core

// maxRefusals bounds the refusals that are recorded; the rest is counted.
const maxRefusals = 256

// refusals are those of a session. The same one is recorded once and then counted,
// since a stubborn tunlet repeats it at every tick.
type refusals struct {
	*transcript
	said map[string]*refusal // by what was proposed, and the scope
}

// refuse answers a proposal that is not applied.
func (r *refusals) refuse(p *proposal, reason string) {
	p.state, p.reason, p.doneAt = StateRefused, reason, r.now
	key := p.exact + "\x00" + p.spec.GetScope()
	known := r.said[key]
	switch {
	case known != nil:
		known.view.Times++
		known.view.Reason = reason
		r.touchRefusal(known)
	case len(r.said) < maxRefusals:
		p.times = 1
		r.record("refused", p, reason)
		r.said[key] = &refusal{view: p.view()}
	default:
		r.lost++
	}
	r.notify(p, reason)
}
