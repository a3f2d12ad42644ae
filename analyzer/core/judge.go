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
	p.state = StateJudging
	p.deadline = j.now + trial.JudgeTimeout
	weakness := p.trial.Begin(j.objective(p), p.sentAt, first, p.appliedAt)
	j.record("applied", p, weakness)
	j.notify(p, weakness)
}

// objective returns what p is judged by.
func (j *judge) objective(p *proposal) trial.Objective {
	return trial.Objective{
		History: p.tunlet.scopes.Get(p.spec.GetScope()), Lower: p.tunlet.lower, MinGain: p.tunlet.minGain,
		Promised: j.known.promised(p), Apart: j.apart,
	}
}

// look looks at the samples of p, for which the time is over or not.
func (j *judge) look(p *proposal, over bool) {
	was := p.trial.Judgement
	r := p.trial.Look(j.objective(p), j.now, over)
	if p.trial.Judgement != was {
		j.touch(p)
	}
	j.follow(p, r)
}

// follow does what the trial of p asks for.
func (j *judge) follow(p *proposal, r trial.Ruling) {
	switch r.Do {
	case trial.ChangeSides:
		j.changeSides(p)
	case trial.AskToKeep:
		j.ask(p, attunev1.Verdict_VERDICT_KEEP)
	case trial.AskToUndo:
		j.ask(p, attunev1.Verdict_VERDICT_UNDO)
	case trial.KeepIt:
		j.keep(p, cmp.Or(r.Reason, p.reason))
	case trial.UndoIt:
		j.undoer.undo(p, StateUndone, r.Reason)
	case trial.DropIt:
		p.inconclusive = true
		j.undoer.undo(p, StateUndone, r.Reason)
	}
}

// ask asks the tunlet for its verdict, with what the core would say. It is not asked
// about canaries, of which it does not know.
func (j *judge) ask(p *proposal, suggested attunev1.Verdict) {
	p.state, p.suggested = StateAsking, suggested
	p.deadline = j.now + evaluateTimeout
	j.record("judged", p, p.trial.Judgement.Text())
	if p.whole != nil {
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
		p.state, p.deadline = StateJudging, j.now+trial.JudgeTimeout
	}
	j.follow(p, r)
}

// keep ends the judgement of a proposal that stays. One that is not in force at
// the moment is made again first.
func (j *judge) keep(p *proposal, reason string) {
	if o := p.outdone(); o != nil {
		j.undoer.undo(p, StateUndone, fmt.Sprintf("gains less than the %.3gx of tunlet %s: %s", o.gain(), o.tunlet.name, p.trial.Judgement.Text()))
		return
	}
	p.displaced = nil
	if p.trial.Prove(reason) {
		j.changeSides(p)
		return
	}
	p.state = StateKept
	if again, judged := p.trial.Keep(j.now); again {
		j.record("kept", p, reason)
		p.trial.Judgement = judged
		return
	}
	p.reason, p.doneAt = reason, j.now
	if p.whole != nil {
		p.whole.aheadUntil = j.now
		j.processes.disturbArea(j.now, p.whole.area())
	}
	j.siblings.tell(p)
	j.record("kept", p, reason)
	j.notify(p, reason)
}

// keepLike keeps p, which is in force, because a sibling's trial ended so.
func (j *judge) keepLike(p *proposal) {
	p.adoptedGain = p.follows.gain()
	j.keep(p, "tried in another process of the program: "+p.follows.reason)
}

// watch looks after a kept change. What others try meanwhile says nothing of it.
func (j *judge) watch(p *proposal) {
	if !p.trial.Watched() {
		return
	}
	if j.line.disturbs(p) {
		p.trial.WatchFrom(j.now + trial.SettleTime)
		return
	}
	j.follow(p, p.trial.Watch(j.objective(p), j.now))
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
	j.requests.undo(p, "to compare with and without it")
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
	j.requests.apply(p)
}

// changedSides begins to look at a turn when the request to change sides is answered.
// from is when the last change took effect.
func (j *judge) changedSides(p *proposal, from time.Duration) {
	switch proven := p.trial.Resume(from); {
	case proven != "":
		j.keep(p, proven)
		if p.withdrawn != "" { // meanwhile
			j.undoer.takeBack(p, p.withdrawn)
		}
	case p.withdrawn != "":
		p.state = StateJudging
		j.undoer.takeBack(p, p.withdrawn)
	default:
		p.state, p.deadline = StateJudging, j.now+trial.JudgeTimeout
	}
}

// tookBack answers the request that takes a change back for a turn.
func (j *judge) tookBack(p *proposal) {
	if len(p.inForce()) > 0 {
		j.undoer.undo(p, StateFailed, "it could not be taken back to compare")
		return
	}
	j.changedSides(p, j.now)
}

// checkTurning gives up on a request to take a change back that nobody answers.
func (j *judge) checkTurning(p *proposal) {
	if j.now >= p.deadline {
		j.requests.close(p.undoRequest)
		j.undoer.undo(p, StateFailed, "no answer from the controller in time")
	}
}
