// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// State is where a proposal stands.
type State int

// The states; those from StateRefused on are final, and so is StateKept once
// its processes have ended.
const (
	// StateWaiting: admitted, waiting for its turn and its baseline.
	StateWaiting State = iota
	// StateApplying: sent to the controllers.
	StateApplying
	// StateJudging: in force, samples are being collected.
	StateJudging
	// StateAsking: in force, the tunlet has been asked for its verdict.
	StateAsking
	// StateTurning: being taken back for a turn, to be made again.
	StateTurning
	// StateKept: judged good, and watched.
	StateKept
	// StateUndoing: being taken back.
	StateUndoing
	// StateRefused: never applied.
	StateRefused
	// StateAdvised: given as advice.
	StateAdvised
	// StateUndone: taken back.
	StateUndone
	// StateFailed: could not be applied, or not be undone.
	StateFailed
	// StateEnded: its processes ended before the verdict.
	StateEnded
)

var stateNames = [...]string{
	"waiting", "applying", "judging", "judging", "judging", "kept", "undoing",
	"refused", "advised", "undone", "failed", "ended",
}

// String returns the state in a word, as the report has it.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return stateNames[s]
}

// proto returns the state as the tunlets know it.
func (s State) proto() attunev1.ProposalState {
	switch s {
	case StateWaiting, StateApplying:
		return attunev1.ProposalState_PROPOSAL_STATE_APPLYING
	case StateJudging, StateAsking, StateTurning, StateUndoing:
		return attunev1.ProposalState_PROPOSAL_STATE_APPLIED
	case StateKept:
		return attunev1.ProposalState_PROPOSAL_STATE_KEPT
	case StateRefused:
		return attunev1.ProposalState_PROPOSAL_STATE_REFUSED
	case StateAdvised:
		return attunev1.ProposalState_PROPOSAL_STATE_ADVISED
	case StateUndone, StateEnded:
		return attunev1.ProposalState_PROPOSAL_STATE_UNDONE
	case StateFailed:
		return attunev1.ProposalState_PROPOSAL_STATE_FAILED
	}
	return attunev1.ProposalState_PROPOSAL_STATE_UNSPECIFIED
}

// proposal is one proposal on its way.
type proposal struct {
	number  uint64 // in which they came; 0: nobody has been told of it
	touched bool   // it is among those that Changed will return
	times   int    // it was refused when it came; 0: it was not
	tunlet  *tunlet
	spec    *attunev1.Proposal
	advice  string // see adviceID
	exact   string // see exactID
	state   State
	reason  string
	changes []*change
	closed  bool // kept, and all its processes or the session have ended

	proposedAt time.Duration
	readyAt    time.Duration // its turn came; 0: not yet
	sentAt     time.Duration
	appliedAt  time.Duration // last of its changes took effect
	doneAt     time.Duration // verdict, or end
	deadline   time.Duration // of the state it is in

	applyRequest, undoRequest string
	withdrawn                 string // why to undo as soon as it is applied

	trial // whether it gains

	canary *proposal // what of it is tried first; nil: nothing
	whole  *proposal // whose canary it is; nil: nobody's

	aheadUntil time.Duration // it had to wait for its canary, or a sibling's trial

	kin     *kin      // the same change in other processes of its program; nil: not known
	follows *proposal // the sibling whose verdict it takes over; nil: it is tried itself
	awaits  bool      // it waits for a sibling's trial

	displaced  []*proposal // kept ones that had a knob of it
	challenged bool        // it had to make room once for one of equal priority

	splits int // parts of it that were withdrawn alone

	adoptedGain float64 // as an earlier session measured it; 0: unknown

	undoTo       State // state after the undo
	undoReason   string
	blameless    bool // it had been judged good: no try is counted, no knob rests
	inconclusive bool // broken off, or not measurable: not known to be useless
	counted      bool // as a try without success
	undoRetries  int
	undoRetryAt  time.Duration // 0: none due
}

// change is one change of a proposal.
type change struct {
	proposal *proposal
	spec     *attunev1.Change
	action   string
	result   *attunev1.ActionResult // last answer; nil: none
	outcome  attunev1.Outcome
	at       time.Duration // when it took effect, the latest time
	first    time.Duration // and the first time
	undoneAt time.Duration
}

// inForce reports whether the change is in force as far as is known.
func (ch *change) inForce() bool {
	return ch.outcome == attunev1.Outcome_OUTCOME_APPLIED
}

// final reports whether nothing more will happen to p.
func (p *proposal) final() bool {
	return p.state >= StateRefused || p.state == StateKept && p.closed
}

// experiment reports whether p changes its processes now without being judged.
func (p *proposal) experiment() bool {
	switch p.state {
	case StateApplying, StateJudging, StateAsking, StateTurning, StateUndoing:
		return true
	}
	return false
}

// overlaps reports whether p and q would be measured as one: they share a
// process, or a tunlet's scope.
func (p *proposal) overlaps(q *proposal) bool {
	if p.tunlet == q.tunlet && p.spec.GetScope() == q.spec.GetScope() {
		return true
	}
	for _, a := range p.changes {
		for _, b := range q.changes {
			if a.spec.GetProcess() == b.spec.GetProcess() {
				return true
			}
		}
	}
	return false
}

// area returns what p's objective is about.
func (p *proposal) area() area { return area{p.tunlet.name, p.spec.GetScope()} }
