// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
)

// maxFinished bounds the finished proposals that are remembered for the report.
const maxFinished = 1000

// archive knows the proposals that were admitted, and their changes, by name. Those
// that are finished it forgets, the oldest first, when there are too many.
type archive struct {
	prefix    string // of the changes' ids
	last      int    // number that a change got
	proposals map[name]*proposal
	changes   map[string]*change
	finished  []*proposal
	views     *views
}

func newArchive(prefix string, views *views) *archive {
	return &archive{prefix: prefix, proposals: map[name]*proposal{}, changes: map[string]*change{}, views: views}
}

// numberChanges gives the changes of p their ids.
func (a *archive) numberChanges(p *proposal) {
	for _, ch := range p.changes {
		a.last++
		ch.spec.Id = fmt.Sprintf("%sc%d", a.prefix, a.last)
	}
}

// add makes p known, and its changes.
func (a *archive) add(p *proposal) {
	for _, ch := range p.changes {
		a.changes[ch.spec.GetId()] = ch
	}
	a.proposals[p.name()] = p
}

// find returns the proposal that a tunlet calls so; nil: it is not known, or not any
// more.
func (a *archive) find(tunlet, id string) *proposal { return a.proposals[name{tunlet, id}] }

// finish keeps a finished proposal for the report, as long as there is room.
func (a *archive) finish(p *proposal) {
	a.finished = append(a.finished, p)
	if len(a.finished) <= maxFinished {
		return
	}
	old := a.finished[0]
	a.finished = a.finished[1:]
	a.views.forget(old)
	for _, ch := range old.changes {
		if a.changes[ch.spec.GetId()] == ch { // else it was taken over by another
			delete(a.changes, ch.spec.GetId())
		}
	}
	if a.proposals[old.name()] == old {
		delete(a.proposals, old.name())
	}
}

// revive takes a proposal out of the finished ones.
func (a *archive) revive(p *proposal) {
	if i := slices.Index(a.finished, p); i >= 0 {
		a.finished = append(a.finished[:i:i], a.finished[i+1:]...)
	}
}

// wasAdvised reports whether the same was advised before.
func (a *archive) wasAdvised(p *proposal) bool {
	return slices.ContainsFunc(a.finished, func(q *proposal) bool {
		return q.exact == p.exact && q.spec.GetScope() == p.spec.GetScope()
	})
}
