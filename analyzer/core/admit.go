// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxOpen bounds the proposals of one tunlet that are tried or wait for their turn, together
// with those in one process that were kept or wait for a sibling's trial: a process may have any
// number of places.
const maxOpen = 256

// admission decides which proposals may go their way.
type admission struct {
	*transcript
	mode       Mode
	tunlets    tunlets
	processes  *processes
	owners     *owners
	restraints *restraints
	line       *line
	archive    *archive
	refusals   *refusals
	rivalry    *rivalry
	canaries   *canaries
	finishing  bool // the session is ending
}

// finish notes that the session is ending: nothing is admitted any more.
func (a *admission) finish() { a.finishing = true }

// propose admits, advises or refuses a proposal.
func (a *admission) propose(tunlet string, spec *attunev1.Proposal) {
	t := a.tunlets[tunlet]
	if t == nil || !t.alive {
		return
	}
	if old := a.archive.find(tunlet, spec.GetId()); old != nil && !old.final() {
		return // said again: it is on its way already
	}
	p := a.newProposal(t, spec)
	if reason := malformed(p, a.processes.runs); reason != "" {
		a.refusals.refuse(p, reason)
		return
	}
	switch a.mode {
	case ModeTune:
		a.admit(p)
	case ModeAdvise:
		a.advise(p)
	default:
		a.refusals.refuse(p, "mode observe: nothing is changed")
	}
}

// newProposal wraps a proposal that nothing has been decided about.
func (a *admission) newProposal(t *tunlet, spec *attunev1.Proposal) *proposal {
	p := &proposal{tunlet: t, spec: spec, proposedAt: a.now}
	for _, s := range spec.GetChanges() {
		p.changes = append(p.changes, &change{proposal: p, spec: s, action: attunev1.ActionText(s.GetAction())})
	}
	p.advice, p.exact = p.adviceID(a.processes.executable), p.exactID(a.processes.executable)
	return p
}

// admit lets a proposal wait for its turn, or refuses it.
func (a *admission) admit(p *proposal) {
	reason := a.forbidden(p)
	rivals, taken := a.rivalry.rivalsOf(p)
	if reason = cmp.Or(reason, taken); reason != "" {
		a.refusals.refuse(p, reason)
		return
	}
	a.rivalry.displace(p, rivals)
	a.archive.numberChanges(p)
	a.archive.add(p)
	a.owners.assign(p)
	a.record("proposed", p, p.spec.GetReason())
	if process := a.canaries.choose(p); process != 0 {
		a.canaries.sendAhead(p, process)
	}
	a.line.enqueue(p)
}

// forbidden says why policy does not allow a proposal now.
func (a *admission) forbidden(p *proposal) string {
	if a.finishing {
		return "the session is ending"
	}
	if reason := a.restraints.exhausted(p); reason != "" {
		return reason
	}
	if open := a.line.open(p); open >= maxOpen {
		return fmt.Sprintf("%d proposals are open already", open)
	}
	return a.restraints.untouchable(p, a.now)
}

// advise gives a proposal as advice, once for each place and scope.
func (a *admission) advise(p *proposal) {
	p.state, p.doneAt = StateAdvised, a.now
	p.reason = p.spec.GetReason()
	if !a.archive.wasAdvised(p) {
		a.archive.finish(p)
		a.record("advised", p, p.reason)
	}
	a.notify(p, "advice "+p.advice)
}

// giveBack proposes again what p took the knobs of, since p does not stay. It is
// tried again like any other proposal. Its tunlet, which measures nothing any more, hears of
// it at once, without a baseline it would be refused; but not before it has heard that what it
// had kept is undone.
func (a *admission) giveBack(p *proposal) {
	if p.again != nil {
		a.tellReturn(p.again)
	}
	displaced := p.displaced
	p.displaced, p.again = nil, nil
	for _, o := range displaced {
		if a.finishing || !o.tunlet.alive {
			continue
		}
		again := a.renew(o)
		if len(again.changes) == 0 {
			continue // ended with its processes
		}
		if reason := cmp.Or(malformed(again, a.processes.runs), a.forbidden(again)); reason != "" {
			a.emit(Record{Kind: "refused", Reason: "not tried again: " + reason, Proposal: again.view()})
			continue
		}
		a.admit(again)
		if !o.final() {
			o.again = again
			continue
		}
		a.tellReturn(again)
	}
}

// tellReturn tells the tunlet of p, which had to make room, that p waits to be tried again.
func (a *admission) tellReturn(p *proposal) {
	if p.state == StateWaiting {
		a.notify(p, "to be tried again")
	}
}

// renew returns a new proposal of what o had in force when it made room, as far as
// the processes still live. What was withdrawn of it before does not come back.
func (a *admission) renew(o *proposal) *proposal {
	spec := proto.CloneOf(o.spec)
	spec.Changes = nil
	for _, ch := range o.gaveUp {
		if a.processes.runs(ch.spec.GetProcess()) {
			spec.Changes = append(spec.Changes, proto.CloneOf(ch.spec))
		}
	}
	again := a.newProposal(o.tunlet, spec)
	again.returned = true
	return again
}

// adopt takes over a change that an earlier session made and kept, or this one by a
// controller that another one has replaced. It has no objective to be watched by, and ends
// with its process, at its tunlet's wish or with the session, as others do.
func (a *admission) adopt(h Held) {
	if known := a.archive.changes[h.ID]; known != nil && !known.proposal.final() {
		return
	}
	if !a.processes.runs(h.Process) || len(a.owners.among(knob{h.Knob, h.Process})) > 0 {
		return
	}
	t := a.tunlets.known(h.Tunlet)
	p := &proposal{
		tunlet: t, spec: &attunev1.Proposal{Id: "taken over " + h.ID}, state: StateKept, adoptedGain: h.Gain,
		proposedAt: a.now, doneAt: a.now, reason: "kept by an earlier session",
	}
	p.trial.WatchFrom(a.now)
	ch := &change{
		proposal: p, action: h.Action, outcome: attunev1.Outcome_OUTCOME_APPLIED, at: a.now, first: a.now,
		spec: &attunev1.Change{Id: h.ID, Process: h.Process, Knob: h.Knob},
	}
	p.changes = []*change{ch}
	p.advice = p.adviceID(a.processes.executable)
	a.owners.assign(p)
	a.archive.add(p)
	a.line.join(p)
	a.record("kept", p, p.reason)
}
