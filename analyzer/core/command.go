// SPDX-License-Identifier: Apache-2.0

package core

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// Command is something that the core's owner must do. Commands are executed in
// the order in which they were returned.
type Command interface{ command() }

// Apply asks for changes, all or nothing. It is answered by one Result per
// change and a RequestDone.
type Apply struct {
	// Request is the id to answer with.
	Request string
	// Changes are to be applied in this order; they are not to be modified.
	Changes []*attunev1.Change
}

// Undo asks for original values back. It is answered like Apply.
type Undo struct {
	// Request is the id to answer with.
	Request string
	// Changes are ids, to be undone in reverse order.
	Changes []string
}

// AskEvaluate asks a tunlet for its verdict, answered by a Verdict event.
type AskEvaluate struct {
	// Tunlet is its name.
	Tunlet string
	// Request is what to ask.
	Request *attunev1.EvaluateRequest
}

// Notify tells a tunlet what became of its proposal.
type Notify struct {
	// Tunlet is its name.
	Tunlet string
	// Request is what to tell.
	Request *attunev1.ProposalChangedRequest
}

// RecordKinds are what a [Record] can be of: turning is a change of sides in a trial in
// turns, turned says when the next turn began; restored is a kept change that was taken back
// because the session ended, left one that was not.
func RecordKinds() []string {
	return []string{
		"proposed", "refused", "advised", "applying", "applied", "turning", "turned", "judged", "kept", "undoing", "undone", "failed",
		"ended", "restored", "left",
	}
}

// Record is one entry of the audit log.
type Record struct {
	// Kind is what happened, one of [RecordKinds].
	Kind string
	// Reason says why, for people.
	Reason string
	// Proposal is the proposal as it stands; it is not to be modified.
	Proposal *attunev1.RecordedProposal
}

func (Apply) command()       {}
func (Undo) command()        {}
func (AskEvaluate) command() {}
func (Notify) command()      {}
func (Record) command()      {}
