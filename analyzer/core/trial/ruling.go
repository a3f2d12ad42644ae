// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"time"
)

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
	// Fewer says that some of the processes with the change have ended: what was measured
	// before is of more of them.
	Fewer bool
	// Name is how people call it, where it is not the tunlet's; empty: it is.
	Name string
	// Pace says how many times as long as usual a trial may take, because samples are
	// that far between; below 1 counts as 1.
	Pace float64
}

// Timeout bounds the time without a ruling, of a turn and of the comparison of before and
// after.
func (o Objective) Timeout() time.Duration { return o.Stretch(judgeTimeout) }

// BaselineWait bounds the wait for enough samples before a change; after it the change is
// tried with a weak baseline, and marked so.
func (o Objective) BaselineWait() time.Duration { return o.Stretch(baselineWait) }

// Stretch returns how long something takes by the objective's pace that usually takes d.
func (o Objective) Stretch(d time.Duration) time.Duration {
	return time.Duration(float64(d) * max(1, o.Pace))
}

// tooFew says that there are too few samples to judge by.
func (o Objective) tooFew(samples int) string {
	return fmt.Sprintf("not measurable: only %d samples of %s in %v", samples, o.Whose(), o.Timeout())
}

// Whose returns what people call the objective in a sentence.
func (o Objective) Whose() string {
	if o.Name == "" {
		return "the objective"
	}
	return fmt.Sprintf("your objective %q", o.Name)
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
