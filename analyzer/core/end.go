// SPDX-License-Identifier: Apache-2.0

package core

// endings are how proposals end. One that has ended is out of the line, has no knob any
// more, is remembered, and everybody has been told.
type endings struct {
	*transcript
	line       *line
	archive    *archive
	owners     *owners
	restraints *restraints
	siblings   *siblings
	// afterEnd does for others what the end of a proposal that does not stay means to them.
	afterEnd func(p *proposal, to State, reason string)
}

// closeKept ends a kept proposal with its processes, or with the session.
func (e *endings) closeKept(p *proposal) {
	p.closed = true
	e.settle(p)
}

// conclude ends a proposal, starts the rest of its knobs where it brought no
// gain, and tells everybody.
func (e *endings) conclude(p *proposal, to State, reason string) {
	kind := to.String()
	if to == StateKept { // taken back only because the session ended
		kind, p.closed = "restored", true
	} else {
		p.doneAt, p.reason = e.now, reason
	}
	p.state = to
	if (to == StateFailed || to == StateUndone) && !p.blameless {
		if !p.counted && p.whole == nil { // an answer may come after the end, and end it again
			p.counted = true
			e.restraints.countFailure(p)
			e.siblings.noteVerdict(p)
		}
		e.restraints.restKnobs(p, e.now)
	}
	e.settle(p)
	e.record(kind, p, reason)
	if to != StateKept { // which its tunlet has heard
		e.notify(p, reason)
		e.afterEnd(p, to, reason)
	}
}

// settle moves a proposal from the line to the finished ones, of which only the judgement is
// remembered.
func (e *endings) settle(p *proposal) {
	for _, ch := range p.changes {
		e.owners.release(ch.knob(), p)
	}
	p.trial.End()
	e.line.leave(p)
	e.archive.finish(p)
	if whole := p.whole; whole != nil && whole.state == StateKept && !whole.closed && len(whole.changes.inForce()) == 0 {
		e.closeKept(whole) // it was left for its canary
	}
}

// revive has a proposal that has ended on its way again.
func (e *endings) revive(p *proposal) {
	e.line.join(p)
	e.archive.revive(p)
}

// endWithProcesses ends a proposal with its last process. One that is being compared again
// was good until then, unless it is being taken back: the verdict on it stands.
func (e *endings) endWithProcesses(p *proposal) {
	if p.state != StateUndoing && p.trial.IsRetrial() {
		p.state = StateKept
		p.trial.BreakOff()
	}
	switch p.state {
	case StateKept:
		if p.canary != nil && p.canary.inPlay() { // its tunlet reaches the canary by it
			p.trial.End()
			return
		}
		e.closeKept(p)
	case StateWaiting:
		e.conclude(p, StateRefused, "the process ended before the change was applied")
	case StateUndoing:
		e.conclude(p, p.undoing.to, p.undoing.reason)
	default:
		e.conclude(p, StateEnded, "the process ended before it could be judged")
	}
}
