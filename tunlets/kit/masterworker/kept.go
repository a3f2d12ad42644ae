// SPDX-License-Identifier: Apache-2.0

package masterworker

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// takeUp goes on where the tunlet was when it had kept a proposal, before it was started again:
// with the rounds of the same master, by which the Analyzer watches over the change.
func (t *Tunlet) takeUp(h *sdk.Host, p *sdk.Proposal) {
	t.count = max(t.count, p.Number())
	for _, c := range p.Changes {
		m := t.members[c.Process]
		if m == nil {
			continue
		}
		m.rounds, t.kept = true, p.ID
		t.watch(h, m)
		if p.Scope == m.handle.Scope() {
			t.master = m.handle
			t.restart(h, 0)
		}
	}
}

// ProposalChanged follows its proposals.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	if c.Earlier != nil {
		t.takeUp(h, c.Earlier)
		return
	}
	switch {
	case c.Proposal == t.kept && t.pending == "":
		t.keptChanged(h, c)
	case c.State == sdk.Kept:
		t.kept = c.Proposal
	}
	if c.Proposal != t.pending || !c.State.Final() {
		return
	}
	t.pending = ""
	pause := rejudge
	if c.State != sdk.Kept {
		t.tries++
		pause = sdk.RetryPause
	}
	t.leaveAlone(h)
	t.restart(h, pause)
}

// keptChanged begins anew when what was kept is compared again or taken back. One that was
// replaced comes back by itself if what replaced it does not stay.
func (t *Tunlet) keptChanged(h *sdk.Host, c sdk.ProposalChange) {
	if c.State.Final() && c.State != sdk.Kept {
		t.kept = ""
		t.leaveAlone(h)
	}
	t.restart(h, sdk.RetryPause)
}

// leaveAlone gives the measure points back if the program was given up, but for the rounds
// of the master while something is kept: the Analyzer watches over it by them.
func (t *Tunlet) leaveAlone(h *sdk.Host) {
	if !t.gaveUp() {
		return
	}
	for _, handle := range slices.Sorted(maps.Keys(t.members)) {
		if m := t.members[handle]; handle == t.master && t.kept != "" {
			m.unwatchWork(h)
		} else {
			m.unwatch(h)
		}
	}
}
