// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// outcomes are what becomes of changes, by their controllers' word: as they were asked
// for, or because somebody else had a hand in it.
type outcomes struct {
	*transcript
	archive    *archive
	processes  *processes
	restraints *restraints
	undoer     *undoer
}

// noteResult notes what became of a change. An answer that comes after the
// proposal was given up must not leave the change in force.
func (o *outcomes) noteResult(ev Result) {
	ch := o.archive.changes[ev.Result.GetChangeId()]
	if ch == nil {
		return
	}
	p, outcome := o.touch(ch.proposal), ev.Result.GetOutcome()
	o.processes.disturb(o.now, p.area(), ch.spec.GetProcess())
	switch {
	case outcome == attunev1.Outcome_OUTCOME_OVERRIDDEN:
		o.noteOverride(ch, ev.Result)
	case outcome == attunev1.Outcome_OUTCOME_APPLIED:
		ch.result, ch.outcome = ev.Result, outcome
		ch.at = o.now
		if ev.At >= p.sentAt && ev.At <= o.now {
			ch.at = ev.At
		}
		ch.first = cmp.Or(ch.first, ch.at)
		if p.final() {
			o.undoer.undo(p, p.state, "applied after the proposal was given up")
		}
	case outcome == attunev1.Outcome_OUTCOME_UNDONE || outcome == attunev1.Outcome_OUTCOME_GONE:
		ch.outcome, ch.undoneAt = outcome, o.now
	case p.state == StateUndoing || p.state == StateTurning:
		p.reason = ev.Result.GetReason() // still in force: asked again
	default:
		ch.outcome = outcome
		ch.noteRefusal(ev.Result)
	}
}

// noteRefusal notes why the change is not made. Of one that took effect before, and is not
// made again, the values of that time stay known.
func (ch *change) noteRefusal(result *attunev1.ActionResult) {
	if ch.result == nil || ch.first == 0 {
		ch.result = result
		return
	}
	ch.result = proto.CloneOf(ch.result) // others have the old one
	ch.result.Outcome, ch.result.Reason = result.GetOutcome(), result.GetReason()
}

// noteLapse notes changes that are not in force any more, though nobody asked for
// that: their leases have ended. What else their proposals changed is undone;
// the tunlets may propose anew.
func (o *outcomes) noteLapse(ev Lapsed) {
	var touched []*proposal
	for _, id := range ev.Changes {
		ch := o.archive.changes[id]
		if ch == nil || !ch.inForce() {
			continue
		}
		ch.outcome, ch.undoneAt = attunev1.Outcome_OUTCOME_UNDONE, o.now
		o.processes.disturb(o.now, o.touch(ch.proposal).area(), ch.spec.GetProcess())
		if !slices.Contains(touched, ch.proposal) {
			touched = append(touched, ch.proposal)
		}
	}
	for _, p := range touched {
		o.undoRest(p, ev.Reason)
	}
}

// undoRest takes back what is left of a proposal that has lost a change, at once or when
// the controllers have answered what they were asked for last. One that is being undone
// comes to its end by itself.
func (o *outcomes) undoRest(p *proposal, reason string) {
	switch p.state {
	case StateJudging, StateAsking, StateKept:
		p.blameless = true
		o.undoer.undo(p, StateUndone, reason)
	case StateApplying, StateTurning:
		p.withdrawn, p.blameless = cause{text: reason}, true
	}
}

// noteOverride notes that the owner of a process, or an administrator, has set a
// knob that a change of ours had set. Their value stays, no tunlet touches the
// knob again, and what else the proposal changed is taken back: it was judged as
// a whole.
func (o *outcomes) noteOverride(ch *change, result *attunev1.ActionResult) {
	if !ch.inForce() {
		return
	}
	ch.outcome, ch.undoneAt = result.GetOutcome(), o.now
	o.restraints.leaveKnob(ch.knob())
	reason := fmt.Sprintf("%s of process %d was changed by hand", ch.spec.GetKnob(), ch.spec.GetProcess())
	if text := result.GetReason(); text != "" {
		reason += ": " + text
	}
	o.undoRest(ch.proposal, reason)
}
