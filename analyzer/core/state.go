// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

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
