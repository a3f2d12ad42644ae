// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// judge has the trials of what is in force: does what they ask for, and tells the
// verdicts.
type judge struct {
	*transcript
	apart     bool // see Config.Apart
	own       *ownObjective
	known     knowledge
	processes *processes
	siblings  *siblings
	line      *line
	requests  *requests
	undoer    *undoer
}

// startJudging begins the trial of a proposal that is in force. first is when the
// first of its changes took effect.
func (j *judge) startJudging(p *proposal, first time.Duration) {
	j.startLooking(p)
	weakness := p.trial.Begin(j.objective(p), p.sentAt, first, p.appliedAt)
	j.record("applied", p, weakness)
	j.notify(p, weakness)
}

// objective returns what p is judged by.
func (j *judge) objective(p *proposal) trial.Objective {
	o := trial.Objective{
		History: p.tunlet.scopes.Of(p.spec.GetScope()), Lower: p.tunlet.lower, MinGain: p.tunlet.minGain,
		Promised: j.known.promised(p), Apart: j.apart, Fewer: p.changes.someGone(),
	}
	o = j.own.outrank(o)
	o.Pace = max(o.Pace, p.pace)
	return o
}

// startLooking gives p the time for the comparison of before and after, or for a turn.
func (j *judge) startLooking(p *proposal) {
	o := j.objective(p)
	p.state, p.pace, p.deadline = StateJudging, o.Pace, j.now+o.Timeout()
}

// slowDown gives p more time where samples of the owner's objective have come to be farther between
// than in its trial so far: with the change the pieces of work of which each brings one may take longer.
func (j *judge) slowDown(p *proposal) {
	if j.own == nil {
		return
	}
	o, slower := j.objective(p), trial.Objective{Pace: p.pace}
	o.Pace = max(o.Pace, paceOf(p.trial.Distance(o)))
	p.deadline += o.Timeout() - slower.Timeout()
	p.pace = o.Pace
}

// heed looks at p when there is another sample of what it is judged by.
func (j *judge) heed(p *proposal) {
	switch p.state {
	case StateJudging:
		j.slowDown(p)
		// A first comparison that is overdue is ended in its order, see Core.advance.
		j.lookAtSamples(p, p.trial.InTurns() && j.now >= p.deadline)
	case StateKept:
		j.watchKept(p)
	}
}

// lookAtSamples looks at the samples of p, for which the time is over or not.
func (j *judge) lookAtSamples(p *proposal, over bool) {
	was := p.trial.Judgement
	r := p.trial.Look(j.objective(p), j.now, over)
	if p.trial.Judgement != was {
		j.touch(p)
	}
	j.carryOut(p, r)
}

// carryOut does what the trial of p asks for.
func (j *judge) carryOut(p *proposal, r trial.Ruling) {
	switch r.Do {
	case trial.ChangeSides:
		j.changeSides(p)
	case trial.AskToKeep:
		j.askTunlet(p, attunev1.Verdict_VERDICT_KEEP)
	case trial.AskToUndo:
		j.askTunlet(p, attunev1.Verdict_VERDICT_UNDO)
	case trial.KeepIt:
		j.keep(p, cmp.Or(r.Reason, p.reason))
	case trial.UndoIt:
		j.undoer.undo(p, StateUndone, r.Reason)
	case trial.DropIt:
		p.inconclusive = true
		j.undoer.undo(p, StateUndone, r.Reason)
	}
}

// askTunlet asks the tunlet for its verdict, with what the core would say. It is not asked
// about canaries, of which it does not know, nor about figures that are not its own.
func (j *judge) askTunlet(p *proposal, suggested attunev1.Verdict) {
	p.state, p.suggested = StateAsking, suggested
	p.deadline = j.now + evaluateTimeout
	j.record("judged", p, p.trial.Judgement.Text())
	if p.whole != nil || j.own != nil {
		j.resolve(p, attunev1.Verdict_VERDICT_UNSPECIFIED, "")
		return
	}
	j.emit(AskEvaluate{Tunlet: p.tunlet.name, Request: &attunev1.EvaluateRequest{
		ProposalId: p.spec.GetId(),
		Before:     p.trial.Judgement.Before.Proto(),
		After:      p.trial.Judgement.After.Proto(),
		Suggested:  suggested,
	}})
}

// resolve does what follows from the tunlet's opinion of p.
func (j *judge) resolve(p *proposal, opinion attunev1.Verdict, reason string) {
	r := p.trial.Resolve(p.suggested, opinion, reason)
	if r.Do == trial.LookOn {
		j.startLooking(p)
	}
	j.carryOut(p, r)
}

// keep ends the judgement of a proposal that stays. One that is not in force at
// the moment is made again first.
func (j *judge) keep(p *proposal, reason string) {
	if o := p.outdone(); o != nil {
		j.undoer.undo(p, StateUndone, fmt.Sprintf("gains less than the %.3gx of tunlet %s: %s", o.gain(), o.tunlet.name, p.trial.Judgement.Text()))
		return
	}
	if p.trial.Prove(reason) {
		j.changeSides(p)
		return
	}
	p.state = StateKept
	if p.withdrawn == (cause{}) { // else it goes at once, and what it displaced comes back
		p.displaced = nil
	}
	if again, judged := p.trial.Keep(j.now); again {
		j.record("kept", p, reason)
		j.notify(p, reason) // the last that the tunlet heard may be that p was lifted
		p.trial.Judgement = judged
		return
	}
	p.reason, p.doneAt = reason, j.now
	if p.whole != nil {
		p.whole.aheadUntil = j.now
		j.processes.disturbArea(j.now, p.whole.area())
	}
	j.siblings.noteVerdict(p)
	j.record("kept", p, reason)
	j.notify(p, reason)
}

// keepLikeSibling keeps p, which is in force, because a sibling's trial ended so.
func (j *judge) keepLikeSibling(p *proposal) {
	p.adoptedGain = p.follows.gain()
	j.keep(p, "tried in another process of the program: "+p.follows.reason)
}

// watchKept looks after a kept change. What others try meanwhile says nothing of it.
func (j *judge) watchKept(p *proposal) {
	o := j.objective(p)
	if !p.trial.Watched(o) {
		return
	}
	if j.line.disturbs(p) {
		p.trial.WatchFrom(j.now + trial.SettleTime)
		return
	}
	j.carryOut(p, p.trial.Watch(o, j.now))
}

// changeSides begins the next turn of a trial: takes the change back, or makes it
// again.
func (j *judge) changeSides(p *proposal) {
	on, why := p.trial.ChangeSides()
	if on {
		j.reapply(p, why)
		return
	}
	p.state = StateTurning
	j.record("turning", p, why)
	j.requests.sendUndo(p)
}

// reapply makes the changes of p again.
func (j *judge) reapply(p *proposal, why string) {
	p.appliedAt = 0
	for _, ch := range p.changes {
		if ch.outcome == attunev1.Outcome_OUTCOME_UNDONE {
			ch.outcome = attunev1.Outcome_OUTCOME_UNSPECIFIED
		}
	}
	p.state = StateApplying
	j.record("turning", p, why)
	j.requests.sendApply(p)
}

// resumeTrial begins to look at a turn when the request to change sides is answered.
// from is when the last change took effect; on says whether it is in force now.
func (j *judge) resumeTrial(p *proposal, from time.Duration, on bool) {
	switch proven := p.trial.Resume(from); {
	case proven != "":
		j.keep(p, proven)
		if p.withdrawn != (cause{}) { // meanwhile
			j.undoer.takeBack(p, p.withdrawn)
		}
	case p.withdrawn != cause{}:
		p.state = StateJudging
		j.undoer.takeBack(p, p.withdrawn)
	default:
		j.startLooking(p)
		j.record("turned", p, "")
		j.notifyTurn(p, on)
	}
}

// finishTakeBack answers the request that takes a change back for a turn.
func (j *judge) finishTakeBack(p *proposal) {
	if len(p.changes.inForce()) > 0 {
		j.undoer.undo(p, StateFailed, "it could not be taken back to compare")
		return
	}
	j.resumeTrial(p, j.now, false)
}

// checkTurning gives up on a request to take a change back that nobody answers.
func (j *judge) checkTurning(p *proposal) {
	if j.now >= p.deadline {
		j.requests.close(p.undoRequest)
		j.undoer.undo(p, StateFailed, "no answer from the controller in time")
	}
}
