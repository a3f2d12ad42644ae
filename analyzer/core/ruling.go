// SPDX-License-Identifier: Apache-2.0

package core

// objective is what a change is judged by: the samples of it, and what counts.
type objective struct {
	*history
	lower    bool    // lower is better
	minGain  float64 // the least gain worth keeping, as a ratio
	promised float64 // gain that is to be expected of the change; 0: nobody knows
	apart    bool    // see Config.Apart
}

// ruling is what a comparison asks for, and why, for people.
type ruling struct {
	do     action
	reason string
}

// action is what to do with a change that is being compared.
type action int

const (
	// lookOn: more samples are needed.
	lookOn action = iota
	// changeSides: take it back to compare, or make it again.
	changeSides
	// askToKeep, askToUndo: the tunlet is asked for its verdict, this one suggested.
	askToKeep
	askToUndo
	// keepIt: it stays, whatever its tunlet thinks.
	keepIt
	// undoIt: it goes, and was tried to the end.
	undoIt
	// dropIt: it goes, and is not known to be useless.
	dropIt
)
