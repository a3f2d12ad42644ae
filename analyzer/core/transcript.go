// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// transcript is what a step has to say: its commands, in order, and which proposals
// are not as they were. It has the time of the step, the only clock there is.
type transcript struct {
	now time.Duration
	out []Command
	views
}

// begin begins a step, and returns how long ago the last one was. An earlier time than that
// counts as that.
func (t *transcript) begin(at time.Duration) (passed time.Duration) {
	passed = max(0, at-t.now)
	t.now += passed
	t.out = nil
	return passed
}

// emit appends a command.
func (t *transcript) emit(cmd Command) { t.out = append(t.out, cmd) }

// record appends an entry for the audit log.
func (t *transcript) record(kind string, p *proposal, reason string) {
	t.emit(Record{Kind: kind, Reason: reason, Proposal: t.touch(p).view()})
}

// notify tells the tunlet of p what became of it.
func (t *transcript) notify(p *proposal, reason string) { t.notifyState(p, p.state.proto(), reason) }

// notifyTurn tells the tunlet of p on which side of the comparison it is from now on. One
// that is compared once more had been kept.
func (t *transcript) notifyTurn(p *proposal, on bool) {
	state := attunev1.ProposalState_PROPOSAL_STATE_LIFTED
	switch {
	case on && p.trial.IsRetrial():
		state = attunev1.ProposalState_PROPOSAL_STATE_KEPT
	case on:
		state = attunev1.ProposalState_PROPOSAL_STATE_APPLIED
	}
	t.notifyState(p, state, "to compare")
}

// remind tells the tunlet of p, which was started again and knows nothing of p, that p was
// kept, and what of it is in force, or will be again after a turn without it.
func (t *transcript) remind(p *proposal) {
	earlier := proto.CloneOf(p.spec)
	earlier.Changes = nil
	all := p.changes
	if p.canary != nil {
		all = slices.Concat(p.canary.changes, all)
	}
	for _, ch := range all {
		turns := ch.proposal.good() && ch.proposal.trial.IsRetrial() && // a canary's are its own
			(ch.outcome == attunev1.Outcome_OUTCOME_UNDONE || ch.outcome == attunev1.Outcome_OUTCOME_UNSPECIFIED)
		if ch.inForce() || turns {
			earlier.Changes = append(earlier.Changes, proto.CloneOf(ch.spec))
		}
	}
	t.send(p, &attunev1.ProposalChangedRequest{
		State: attunev1.ProposalState_PROPOSAL_STATE_KEPT, Reason: "kept before the tunlet's restart", Earlier: earlier,
	})
}

// notifyState tells the tunlet of p a state.
func (t *transcript) notifyState(p *proposal, state attunev1.ProposalState, reason string) {
	t.send(p, &attunev1.ProposalChangedRequest{State: state, Reason: reason})
}

// send tells the tunlet of p something of p, with the results. The tunlet does not know of
// canaries.
func (t *transcript) send(p *proposal, req *attunev1.ProposalChangedRequest) {
	if !p.tunlet.alive || p.whole != nil {
		return
	}
	req.ProposalId = p.spec.GetId()
	for _, ch := range p.changes {
		if ch.result != nil {
			req.Results = append(req.Results, ch.result)
		}
	}
	t.emit(Notify{Tunlet: p.tunlet.name, Request: req})
}

// refusal is a proposal that was refused when it came, however often.
type refusal struct {
	view    *attunev1.RecordedProposal
	touched bool // it is among those that views.changed will return
}

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
func (v *views) changed() (changed []*attunev1.RecordedProposal, forgotten []uint64) {
	for _, p := range v.unseen {
		p.touched = false
		changed = append(changed, p.view())
	}
	for _, r := range v.unseenRefusals {
		r.touched = false
		changed = append(changed, proto.CloneOf(r.view)) // its times go on rising
	}
	forgotten = v.forgotten
	v.unseen, v.unseenRefusals, v.forgotten = v.unseen[:0], v.unseenRefusals[:0], nil
	return changed, forgotten
}
