// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

// look is at a proposal that was kept: from time to time its nodes count calls, all of them
// at the same time, also where that is dear. Others count all the time.
type look struct {
	perprocess.Looks

	scope string // of the objective that it is judged by
}

// looks are those at proposals of a tunlet, by their ids.
type looks map[string]*look

// hear takes what became of a proposal.
func (all looks) hear(h *sdk.Host, t *Tunlet, c sdk.ProposalChange) {
	l := all[c.Proposal]
	if l == nil {
		if c.State == sdk.Kept {
			all.begin(h, t, c.Proposal)
		}
		return
	}
	switch began, ended := l.Hear(h.Now(), c); {
	case began:
		all.open(h, t, c.Proposal)
	case ended:
		all.close(h, t, c.Proposal)
		delete(all, c.Proposal)
	}
}

// begin begins to look at what was just kept.
func (all looks) begin(h *sdk.Host, t *Tunlet, id string) {
	for _, n := range t.nodes {
		if p, has := n.proposals[id]; has {
			l := &look{scope: p.scope}
			l.Begin(h.Now(), id)
			all[id] = l
			all.open(h, t, id)
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
			all.close(h, t, id)
		}
	}
}

// open has the calls counted that a proposal is judged by. One that changes nothing any more
// is forgotten.
func (all looks) open(h *sdk.Host, t *Tunlet, id string) {
	nodes := 0
	for _, n := range t.sorted() {
		if _, has := n.proposals[id]; has {
			n.looked[id] = true
			watchRanks(h, n)
			nodes++
		}
	}
	if nodes == 0 {
		delete(all, id)
	}
}

// close has them counted no more where that is dear.
func (looks) close(h *sdk.Host, t *Tunlet, id string) {
	for _, n := range t.sorted() {
		if n.looked[id] {
			delete(n.looked, id)
			n.shed(h)
		}
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
