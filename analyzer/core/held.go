// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Held is a change that is to stay in force.
type Held struct {
	// ID is the change's.
	ID string
	// Process is the handle of its process.
	Process uint64
	// Knob is what it changes.
	Knob string
	// Tunlet is whose it is.
	Tunlet string
	// Action is what it does, see attunev1.ActionText.
	Action string
	// Kept says that its gain was proven; else it is still under judgement.
	Kept bool
	// Gain is its measured gain, as a ratio; 0: unknown.
	Gain float64
}

// Held returns the changes that are to stay in force as things stand: those
// that were kept and those that are being judged, in the order of their
// proposals.
func (c *Core) Held() []Held {
	return c.line.held()
}

// lapsed notes changes that are not in force any more, though nobody asked for
// that: their leases have ended. What else their proposals changed is undone;
// the tunlets may propose anew.
func (c *Core) lapsed(ev Lapsed) {
	var touched []*proposal
	for _, id := range ev.Changes {
		ch := c.archive.changes[id]
		if ch == nil || !ch.inForce() {
			continue
		}
		ch.outcome, ch.undoneAt = attunev1.Outcome_OUTCOME_UNDONE, c.now
		c.processes.disturb(c.now, c.touch(ch.proposal).area(), ch.spec.GetProcess())
		if !slices.Contains(touched, ch.proposal) {
			touched = append(touched, ch.proposal)
		}
	}
	for _, p := range touched {
		c.afterLapse(p, ev.Reason)
	}
}

// afterLapse takes back what is left of a proposal that has lost a change. One
// that is being undone comes to its end by itself.
func (c *Core) afterLapse(p *proposal, reason string) {
	switch p.state {
	case StateJudging, StateAsking, StateKept:
		p.blameless = true
		c.undo(p, StateUndone, reason)
	}
}

// adopt takes over a change that an earlier session made and kept. It has no
// objective to be watched by, and ends with its process, at its tunlet's wish or
// with the session, as others do.
func (c *Core) adopt(h Held) {
	if !c.processes.runs(h.Process) || c.archive.changes[h.ID] != nil || len(c.owners.among(knob{h.Knob, h.Process})) > 0 {
		return
	}
	t := c.tunlets.expected(h.Tunlet, c.now)
	p := &proposal{
		tunlet: t, spec: &attunev1.Proposal{Id: "taken over " + h.ID}, state: StateKept, adoptedGain: h.Gain,
		proposedAt: c.now, doneAt: c.now, trial: trial{watchFrom: c.now}, reason: "kept by an earlier session",
	}
	ch := &change{
		proposal: p, action: h.Action, outcome: attunev1.Outcome_OUTCOME_APPLIED, at: c.now, first: c.now,
		spec: &attunev1.Change{Id: h.ID, Process: h.Process, Knob: h.Knob},
	}
	p.changes = []*change{ch}
	p.advice = c.adviceID(p)
	c.owners.take(knob{h.Knob, h.Process}, p)
	c.archive.add(p)
	c.line.join(p)
	c.record("kept", p, p.reason)
}
