// SPDX-License-Identifier: Apache-2.0

package core

// views are what people are shown of proposals and refusals, as far as they have not
// seen it yet. Each that is shown has a number.
type views struct {
	last           uint64
	unseen         []*proposal // not as they were at the last call of changed
	unseenRefusals []*refusal
	forgotten      []uint64 // numbers of proposals that were forgotten since
	lost           int      // proposals and refusals that there was no room for
}

// touch has changed return p, which it returns, and gives it its number. Whoever
// changes what a view shows calls it.
func (v *views) touch(p *proposal) *proposal {
	if p.number == 0 {
		v.last++
		p.number = v.last
	}
	if !p.touched {
		p.touched = true
		v.unseen = append(v.unseen, p)
	}
	return p
}

// touchRefusal has changed return r.
func (v *views) touchRefusal(r *refusal) {
	if !r.touched {
		r.touched = true
		v.unseenRefusals = append(v.unseenRefusals, r)
	}
}

// forget notes that a proposal is not remembered any more.
func (v *views) forget(p *proposal) {
	v.lost++
	v.forgotten = append(v.forgotten, p.number)
}

// changed returns what may not be as it was at the last call, and the numbers of the
// proposals that have been forgotten since.
func (v *views) changed() (changed []ProposalView, forgotten []uint64) {
	for _, p := range v.unseen {
		p.touched = false
		changed = append(changed, p.view())
	}
	for _, r := range v.unseenRefusals {
		r.touched = false
		changed = append(changed, r.view)
	}
	forgotten = v.forgotten
	v.unseen, v.unseenRefusals, v.forgotten = v.unseen[:0], v.unseenRefusals[:0], nil
	return changed, forgotten
}
