// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// applier makes changes when their turn has come, and hands what is in force to the
// judge.
type applier struct {
	*transcript
	queueWait time.Duration
	line      *line
	processes *processes
	siblings  *siblings
	requests  *requests
	ends      *endings
	undoer    *undoer
	judge     *judge
}

// tryApply sends a waiting proposal when its turn has come and its baseline is
// there, or waited for long enough. Without any sample it is refused: what
// cannot be judged is not tried on an application.
func (a *applier) tryApply(p *proposal) {
	if p.awaitsCanary() {
		return
	}
	if refused := a.siblings.awaitTrial(p, a.now); refused != "" {
		a.ends.conclude(p, StateRefused, refused)
		return
	}
	if p.awaits {
		return
	}
	o := a.judge.objective(p)
	if a.line.blocks(p) {
		p.readyAt = 0
		if wait := o.Stretch(a.queueWait); a.now >= max(p.proposedAt, p.aheadUntil)+wait {
			a.ends.conclude(p, StateRefused, fmt.Sprintf("other changes were under judgement for %v", wait))
		}
		return
	}
	if p.readyAt == 0 {
		p.readyAt = max(a.now, 1)
	}
	switch n := p.trial.Prepare(o, a.now, a.processes.quiet(p)); {
	case n >= trial.MinSamples:
		a.apply(p)
	case a.now < p.readyAt+o.BaselineWait(), (n == 0 || a.judge.own.unpaced()) && a.now < p.readyAt+a.judge.own.silence(o.Apart):
	case n == 0:
		a.ends.conclude(p, StateRefused, a.judge.own.noBaseline(p, a.now))
	default:
		a.apply(p)
	}
}

// apply sends a proposal's changes.
func (a *applier) apply(p *proposal) {
	p.state = StateApplying
	a.record("applying", p, "")
	a.notify(p, "")
	a.requests.sendApply(p)
}

// checkApply gives up on an apply request that nobody answers.
func (a *applier) checkApply(p *proposal) {
	if a.now >= p.deadline {
		a.requests.close(p.applyRequest)
		for _, ch := range p.changes {
			if ch.outcome == attunev1.Outcome_OUTCOME_UNSPECIFIED {
				ch.outcome = attunev1.Outcome_OUTCOME_APPLIED // nobody knows: undo it
			}
		}
		a.undoer.undo(p, StateFailed, "no answer from the controller in time")
	}
}

// finishApply starts the judgement, or undoes what a failed change left behind. A change
// that was overridden by hand meanwhile, or whose lease has ended, has not failed: its
// proposal is withdrawn.
func (a *applier) finishApply(p *proposal) {
	first := a.now
	gone := 0
	for _, ch := range p.changes {
		switch {
		case ch.inForce():
			first = min(first, ch.at)
			p.appliedAt = max(p.appliedAt, ch.at)
		case ch.outcome == attunev1.Outcome_OUTCOME_GONE:
			gone++
		case ch.outcome == attunev1.Outcome_OUTCOME_OVERRIDDEN:
		case ch.outcome != attunev1.Outcome_OUTCOME_UNDONE || p.withdrawn == cause{}:
			a.undoer.undo(p, StateFailed, p.changes.failure())
			return
		}
	}
	switch {
	case gone == len(p.changes):
		a.ends.conclude(p, StateEnded, "the process ended before the change took effect")
	case p.trial.InTurns():
		a.judge.resumeTrial(p, p.appliedAt, true)
	case p.withdrawn != cause{}:
		a.undoer.undo(p, StateUndone, p.withdrawn.text)
	case p.changes.changeNothing():
		a.undoer.undo(p, StateUndone, "every value was already what is asked for")
	default:
		a.judge.startJudging(p, first)
		if p.follows != nil && p.follows.good() && p.trial.Watched(a.judge.objective(p)) { // it may have turned out bad meanwhile
			a.judge.keepLikeSibling(p)
		}
	}
}
