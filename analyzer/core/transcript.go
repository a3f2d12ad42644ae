// SPDX-License-Identifier: Apache-2.0

package core

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// transcript is what a step has to say: its commands, in order, and which proposals
// are not as they were. It has the time of the step, the only clock there is.
type transcript struct {
	now time.Duration
	out []Command
	views
}

// step begins a step. An earlier time than the last one counts as that.
func (t *transcript) step(at time.Duration) {
	t.now = max(t.now, at)
	t.out = nil
}

// emit appends a command.
func (t *transcript) emit(cmd Command) { t.out = append(t.out, cmd) }

// record appends an entry for the audit log.
func (t *transcript) record(kind string, p *proposal, reason string) {
	t.emit(Record{
		At: t.now, Kind: kind, Reason: reason, Proposal: t.touch(p).view(),
	})
}

// notify tells the tunlet of p what became of it. It does not know of canaries.
func (t *transcript) notify(p *proposal, reason string) {
	if !p.tunlet.alive || p.whole != nil {
		return
	}
	req := &attunev1.ProposalChangedRequest{
		ProposalId: p.spec.GetId(), State: p.state.proto(), Reason: reason,
	}
	for _, ch := range p.changes {
		if ch.result != nil {
			req.Results = append(req.Results, ch.result)
		}
	}
	t.emit(Notify{Tunlet: p.tunlet.name, Request: req})
}
