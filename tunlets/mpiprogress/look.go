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

// hear takes what became of a proposal.
func (t *Tunlet) hear(h *sdk.Host, c sdk.ProposalChange) {
	l := t.looks[c.Proposal]
	if l == nil {
		if c.State == sdk.Kept {
			t.lookAfter(h, c.Proposal)
		}
		return
	}
	switch began, ended := l.Hear(h.Now(), c); {
	case began:
		t.open(h, c.Proposal)
	case ended:
		t.close(h, c.Proposal)
		delete(t.looks, c.Proposal)
	}
}

// lookAfter begins to look at what was just kept.
func (t *Tunlet) lookAfter(h *sdk.Host, id string) {
	for _, n := range t.nodes {
		if p, has := n.proposals[id]; has {
			l := &look{scope: p.scope}
			l.Begin(h.Now(), id)
			t.looks[id] = l
			t.open(h, id)
			return
		}
	}
}

// look begins the looks that are due, and ends those that are over.
func (t *Tunlet) look(h *sdk.Host) {
	for _, id := range slices.Sorted(maps.Keys(t.looks)) {
		switch l, now := t.looks[id], h.Now(); {
		case l.Due(now):
			t.open(h, id)
		case l.Over(now):
			l.End(now)
			t.close(h, id)
		}
	}
}

// open has the calls counted that a proposal is judged by. One that changes nothing any more
// is forgotten.
func (t *Tunlet) open(h *sdk.Host, id string) {
	nodes := 0
	for _, n := range t.sorted() {
		if _, has := n.proposals[id]; has {
			n.looked[id] = true
			n.watch(h)
			nodes++
		}
	}
	if nodes == 0 {
		delete(t.looks, id)
	}
}

// close has them counted no more where that is dear.
func (t *Tunlet) close(h *sdk.Host, id string) {
	for _, n := range t.sorted() {
		if n.looked[id] {
			delete(n.looked, id)
			n.shed(h)
		}
	}
}

// objective reports a value.
func (t *Tunlet) objective(h *sdk.Host, scope string, value float64) {
	h.Objective(scope, value)
	for _, l := range t.looks {
		if l.scope == scope {
			l.Reported()
		}
	}
}
