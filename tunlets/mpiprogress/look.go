// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

// look is at a proposal that was kept: from time to time the nodes by which it is judged count
// calls, all of them at the same time, also where that is dear. Others count all the time.
type look struct {
	perprocess.Looks

	scope string // of the objective
	nodes []*node
}

// newLook makes one at a proposal that is judged by an objective of that scope.
func (t *Tunlet) newLook(id, scope string) *look {
	l := &look{scope: scope}
	for _, s := range t.series {
		if s.judges[id] {
			l.nodes = inOrder(maps.Keys(s.shares))
			return l
		}
	}
	for _, n := range t.nodes {
		if n.scope() == scope {
			l.nodes = []*node{n}
		}
	}
	return l
}

// looks are those at proposals of a tunlet, by their ids; also of those that were undone, which
// may be tried again.
type looks map[string]*look

// hear takes what became of a proposal.
func (all looks) hear(h *sdk.Host, t *Tunlet, c sdk.ProposalChange) {
	l := all[c.Proposal]
	if l == nil {
		all.begin(h, t, c)
		return
	}
	switch began, ended := l.Hear(h.Now(), c); {
	case began:
		all.open(h, t, c.Proposal)
	case ended:
		l.close(h, c.Proposal)
	}
}

// begin begins to look at what was just kept.
func (all looks) begin(h *sdk.Host, t *Tunlet, c sdk.ProposalChange) {
	for _, n := range t.nodes {
		if p, has := n.proposals[c.Proposal]; has && c.State == sdk.Kept {
			l := t.newLook(c.Proposal, p.scope)
			l.Begin(h.Now(), c.Proposal)
			all[c.Proposal] = l
			all.open(h, t, c.Proposal)
			return
		}
	}
}

// take begins the looks that are due, and ends those that are over.
func (all looks) take(h *sdk.Host, t *Tunlet) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		switch l, now := all[id], h.Now(); {
		case l.Due(now):
			all.open(h, t, id)
		case l.Over(now):
			l.End(now)
			l.close(h, id)
		}
	}
}

// open has the calls counted that a proposal is judged by. It is forgotten where one of the nodes
// is not there any more: there will be no value.
func (all looks) open(h *sdk.Host, t *Tunlet, id string) {
	l := all[id]
	if len(l.nodes) == 0 || slices.ContainsFunc(l.nodes, func(n *node) bool { return t.nodes[n.host] != n }) {
		l.close(h, id)
		delete(all, id)
		return
	}
	for _, n := range l.nodes {
		n.looked[id] = true
		n.attend(h)
		watchRanks(h, n)
	}
}

// close has them counted no more where that is dear.
func (l *look) close(h *sdk.Host, id string) {
	for _, n := range l.nodes {
		delete(n.looked, id)
		n.shed(h)
	}
}

// reported counts a value of an objective.
func (all looks) reported(scope string) {
	for _, l := range all {
		if l.scope == scope {
			l.Reported()
		}
	}
}
