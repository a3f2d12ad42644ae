// SPDX-License-Identifier: Apache-2.0

package trial

// Objective is what a change is judged by: the samples of it, and what counts.
type Objective struct {
	*History
	// Lower says that lower is better.
	Lower bool
	// MinGain is the least gain worth keeping, as a ratio (0.05 = 5 %).
	MinGain float64
	// Promised is the gain that is to be expected of the change, as a factor; 0: nobody
	// knows.
	Promised float64
	// Apart says that others tune parts of the same application and know nothing of
	// this trial, so that there must be no turns.
	Apart bool
}

// Ruling is what a trial asks for. The zero value asks for more samples.
type Ruling struct {
	// Do is what is to be done.
	Do Action
	// Reason says why, for people; empty for a change that stays: as it was kept for.
	Reason string
}

// Action is what to do with a change that is being compared.
type Action int

// The actions.
const (
	// LookOn: more samples are needed.
	LookOn Action = iota
	// ChangeSides: it is to be taken back to compare, or made again, see [Trial.ChangeSides].
	ChangeSides
	// AskToKeep and AskToUndo: the tunlet is asked for its verdict, this one suggested.
	AskToKeep
	AskToUndo
	// KeepIt: it stays, whatever its tunlet thinks.
	KeepIt
	// UndoIt: it goes, and was tried to the end.
	UndoIt
	// DropIt: it goes, and is not known to be useless.
	DropIt
)
