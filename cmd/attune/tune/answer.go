// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"errors"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/action"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Answer is one line of the answer, and the JSON document's element.
type Answer struct {
	// ID to undo it by; empty where there is nothing to undo.
	ID      string `json:"id,omitempty"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
	Knob    string `json:"knob"`
	On      *int32 `json:"on,omitempty"`
	Old     string `json:"old"`
	New     string `json:"new"`
	// State is one of the constants below.
	State string `json:"state"`
	// Way that served it, or would be tried first.
	Way string `json:"way,omitempty"`
	// SafePoint is where it was done, e.g. "entry of step, thread 4711".
	SafePoint string `json:"safe_point,omitempty"`
	// StoppedSeconds is how long a thread of the process was stopped.
	StoppedSeconds float64 `json:"stopped_seconds,omitempty"`
	// Partial is what the change does not cover; empty: nothing.
	Partial string `json:"partial,omitempty"`
	// Undo says why it cannot be taken back; empty: it can.
	Undo string `json:"cannot_undo,omitempty"`
	// Reason of a change that was refused, failed or taken back.
	Reason string `json:"reason,omitempty"`

	once   bool   // a call
	leaves bool   // nothing that could be undone
	symbol string // whose address the result is; empty: it is a value
}

// States of a tuned line.
const (
	StateChanged   = "changed"
	stateUnchanged = "unchanged"
	stateWould     = "would-change"
	stateRefused   = "refused"
	StateFailed    = "failed"
	stateUntried   = "not-tried"
	stateBack      = "taken-back"
	stateGone      = "gone"
)

// newTuned is what a change would do.
func newTuned(process *access.Journaled, r Request, preview actuate.Preview) Answer {
	line := Answer{
		PID: process.PID(), Program: procs.Name(process.PID()), Knob: r.Name, On: nil,
		Old: preview.Old, New: preview.New, State: stateWould, Way: string(preview.Way), Partial: preview.Partial,
	}
	if set := r.Action.GetSystem(); set != nil {
		line.On = set.On
	}
	line.symbol = r.Action.GetLoad().GetSymbol()
	line.once = errors.Is(preview.Undo, action.ErrCallNotUndoable)
	line.leaves = line.once || errors.Is(preview.Undo, action.ErrLibraryStays)
	if preview.Undo != nil {
		line.Undo = preview.Undo.Error()
	}
	if preview.Unchanged {
		line.State = stateUnchanged
	}
	return line
}

// states of a change that was tried.
var states = map[attunev1.Outcome]string{
	attunev1.Outcome_OUTCOME_APPLIED: StateChanged,
	attunev1.Outcome_OUTCOME_REFUSED: stateRefused,
	attunev1.Outcome_OUTCOME_FAILED:  StateFailed,
	attunev1.Outcome_OUTCOME_UNDONE:  stateBack,
	attunev1.Outcome_OUTCOME_GONE:    stateGone,
}

// take takes in the answer to a change.
func (l *Answer) take(result *attunev1.ActionResult) {
	l.State, l.Reason = states[result.GetOutcome()], result.GetReason()
	if result.GetUntried() {
		l.State = stateUntried
	}
	if l.State != StateChanged {
		if l.State != StateFailed {
			l.ID = "" // it is in no journal any more
		}
		return
	}
	l.Way, l.SafePoint, l.Partial = result.GetWay(), result.GetSafePoint(), result.GetPartial()
	l.StoppedSeconds = time.Duration(result.GetStoppedNanos()).Seconds()
	if old := result.GetOldValue(); old != nil {
		l.Old = attunev1.ValueText(old)
	}
	if now := result.GetNewValue(); now != nil {
		l.New = attunev1.ValueText(now)
		if l.symbol != "" {
			l.New = fmt.Sprintf("loaded, %s at %#x", l.symbol, now.GetUnsigned())
		}
	}
}

// text is the line for people.
func (l Answer) text() string {
	name := l.Knob
	if l.On != nil {
		name += fmt.Sprintf("@%d", *l.On)
	}
	where := fmt.Sprintf("%s of process %d (%s)", name, l.PID, l.Program)
	what := fmt.Sprintf("%s: %s → %s", where, l.Old, l.New)
	if l.once {
		where = fmt.Sprintf("%s in process %d (%s)", name, l.PID, l.Program)
		what = where
	}
	switch l.State {
	case stateUnchanged:
		return fmt.Sprintf("unchanged: %s is %s already", where, l.Old)
	case stateWould:
		return "would change: " + what + l.how() + l.wayBack("it can be undone")
	case stateBack:
		return "taken back: " + where
	case StateChanged:
		if l.once {
			return fmt.Sprintf("done: %s returned %s%s", where, l.New, l.how())
		}
		if l.leaves {
			return "done: " + what + l.how()
		}
		return "change " + l.ID + ": " + what + l.how() + l.wayBack("attune undo "+l.ID)
	}
	return fmt.Sprintf("%s: %s: %s", l.State, where, l.Reason)
}

// how says by which way, and what is not covered.
func (l Answer) how() string {
	text := ""
	if l.Way != "" && l.Way != string(access.WaySystem) {
		text = "; by " + l.Way
		if l.SafePoint != "" && l.SafePoint != attunev1.SafePointNow {
			text += " (" + l.SafePoint + ")"
		}
	}
	if l.StoppedSeconds > 0 {
		text += fmt.Sprintf(", stopped %.2g ms", 1000*l.StoppedSeconds)
	}
	if l.Partial != "" {
		text += "; partial: " + l.Partial
	}
	return text
}

func (l Answer) wayBack(there string) string {
	if l.Undo != "" {
		return "; no way back: " + l.Undo
	}
	return "; " + there
}
