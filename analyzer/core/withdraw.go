// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// withdrawals are tunlets' wishes to take proposals back, or parts of what they keep in
// force.
type withdrawals struct {
	*transcript
	archive  *archive
	owners   *owners
	line     *line
	undoer   *undoer
	canaries *canaries
}

// withdraw takes a proposal back at its tunlet's wish.
func (w *withdrawals) withdraw(ev Withdraw) {
	p := w.archive.find(ev.Tunlet, ev.Proposal)
	if p == nil || p.final() {
		return
	}
	reason := "withdrawn by the tunlet: " + ev.Reason
	if p.state != StateKept || len(ev.Processes) == 0 {
		w.undoer.takeBack(p, cause{text: reason})
		w.canaries.recallCanary(p, reason)
		return
	}
	if part := w.split(p, ev.Processes); part != nil {
		w.undoer.takeBack(part, cause{text: reason})
	}
	// A canary is in one process, and may be compared again just now.
	meant := func(ch *change) bool { return slices.Contains(ev.Processes, ch.spec.GetProcess()) }
	if c := p.canary; c != nil && c.inPlay() && slices.ContainsFunc(c.changes, meant) {
		w.undoer.takeBack(c, cause{text: reason})
	}
}

// split makes a proposal of its own, kept like p, of p's changes in the given
// processes, and returns it: p itself if nothing of p in force would be left, also
// not of its canary, nil if nothing of p in force is in them.
func (w *withdrawals) split(p *proposal, processes []uint64) *proposal {
	var part changes
	meant := func(ch *change) bool { return slices.Contains(processes, ch.spec.GetProcess()) }
	for _, ch := range p.changes {
		if ch.inForce() && meant(ch) {
			part = append(part, ch)
		}
	}
	all := len(part) == len(p.changes.inForce())
	switch {
	case len(part) == 0:
		return nil
	case all && (p.canary == nil || !p.canary.inPlay() || slices.ContainsFunc(p.canary.changes, meant)):
		return p
	}
	p.splits++
	q := *p
	q.canary, q.whole, q.displaced = nil, nil, nil
	q.spec = proto.CloneOf(p.spec)
	q.spec.Id = fmt.Sprintf("%s/%d", p.spec.GetId(), p.splits)
	q.number, q.touched = 0, false
	p.cedeChanges(&q, part)
	if all { // its canary stays, and is watched for itself
		p.trial.End()
	}
	w.touch(p)
	w.touch(&q)
	w.owners.assign(&q)
	w.line.join(&q)
	return &q
}
