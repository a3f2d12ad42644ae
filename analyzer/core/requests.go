// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// requests are those to the controllers that are not answered. Each belongs to a
// proposal, whose deadline is when it is given up.
type requests struct {
	*transcript
	unanswered map[string]*proposal
	last       int // number that one got
}

// sendApply asks for the changes of p, in the processes that live.
func (r *requests) sendApply(p *proposal) {
	var specs []*attunev1.Change
	for _, ch := range p.changes {
		if ch.outcome != attunev1.Outcome_OUTCOME_GONE {
			specs = append(specs, ch.spec)
		}
	}
	p.sentAt = r.now
	p.applyRequest = r.open(p)
	r.emit(Apply{Request: p.applyRequest, Changes: specs})
}

// sendUndo asks for the original values of what of p is in force.
func (r *requests) sendUndo(p *proposal) {
	p.undoRequest = r.open(p)
	r.emit(Undo{Request: p.undoRequest, Changes: p.changes.inForce()})
}

// open returns a new request id that belongs to p.
func (r *requests) open(p *proposal) string {
	r.last++
	id := fmt.Sprintf("r%d", r.last)
	r.unanswered[id] = p
	p.deadline = r.now + p.changes.safePoints() + applyTimeout
	return id
}

// close ends a request that was answered, or that nobody waits for any more, and
// returns whose it was; nil: nobody's.
func (r *requests) close(id string) *proposal {
	p := r.unanswered[id]
	delete(r.unanswered, id)
	return p
}

// busy reports whether a request is unanswered.
func (r *requests) busy() bool { return len(r.unanswered) > 0 }
