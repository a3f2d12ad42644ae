// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"
	"time"
)

const (
	// undoTries bounds the attempts to undo one proposal.
	undoTries = 3
	// undoPause lies between them.
	undoPause = time.Second
)

// atEnd is why what is in force is taken back, or left, when the session ends.
var atEnd = cause{"the session ended", true}

// undoer takes back what is in force, and ends proposals with that. It asks until the
// original values are back, or it has tried often enough.
type undoer struct {
	*transcript
	requests *requests
	ends     *endings
	// changeSides has what is being judged in turns made again, see judge.
	changeSides func(p *proposal)

	finishing bool // the session is ending
	keep      bool // then what was judged good is left in force
}

// finish notes that the session is ending.
func (u *undoer) finish(keep bool) {
	u.finishing = true
	u.keep = u.keep || keep
}

// takeBack ends a proposal whatever its state, without a measured verdict. A
// kept one that is taken back when the session ends stays kept in the report:
// it was good until then.
func (u *undoer) takeBack(p *proposal, why cause) {
	switch p.state {
	case StateWaiting:
		u.ends.conclude(p, StateRefused, why.text)
	case StateApplying, StateTurning:
		p.withdrawn = cmp.Or(p.withdrawn, why)
	case StateJudging, StateAsking:
		u.breakOff(p, why.text)
	case StateKept:
		switch {
		case p.closed: // with its canary
		case p.canary != nil && len(p.changes.inForce()) == 0: // only its canary was left
			u.ends.closeKept(p)
		case u.leaves(p):
			u.leave(p)
		case u.finishing:
			u.undo(p, StateKept, atEnd.text)
		default:
			p.blameless = true
			u.undo(p, StateUndone, why.text)
		}
	case StateUndoing:
		u.hastenUndo(p)
	}
}

// leaves reports whether the end of the session leaves p in force, which was judged good:
// unless somebody had it taken back already.
func (u *undoer) leaves(p *proposal) bool {
	return u.finishing && u.keep && (p.withdrawn == cause{} || p.withdrawn.end)
}

// leave ends a proposal that stays in force at the end of the session.
func (u *undoer) leave(p *proposal) {
	p.state = StateKept
	u.ends.closeKept(p)
	u.record("left", p, atEnd.text)
}

// breakOff takes back what is being judged. That proves nothing about it; one that
// had been kept was good until then, and may stay. If it is not in force in the present
// turn, it is made again first.
func (u *undoer) breakOff(p *proposal, reason string) {
	stays := u.leaves(p) && p.trial.IsRetrial()
	if stays && p.trial.Prove(p.reason) {
		p.withdrawn = atEnd
		u.changeSides(p)
		return
	}
	p.trial.BreakOff()
	switch {
	case stays:
		u.leave(p)
	case u.finishing && p.trial.IsRetrial():
		u.undo(p, StateKept, reason)
	case u.finishing:
		u.undo(p, StateEnded, atEnd.text+" before it could be judged")
	default:
		p.inconclusive = true
		p.blameless = p.blameless || p.trial.IsRetrial()
		u.undo(p, StateUndone, reason)
	}
}

// undo asks for the original values of what is in force; to is the state that
// the proposal ends in.
func (u *undoer) undo(p *proposal, to State, reason string) {
	p.blameless = p.blameless || to == StateFailed && p.trial.IsRetrial() // it helped
	if len(p.changes.inForce()) == 0 {
		u.ends.conclude(p, to, reason)
		return
	}
	if p.final() {
		u.ends.revive(p)
	}
	p.state = StateUndoing
	p.undoing.to, p.undoing.reason, p.undoing.retryAt = to, reason, 0
	u.record("undoing", p, reason)
	u.requests.sendUndo(p)
}

// finishUndo ends an undo, or has it tried again later.
func (u *undoer) finishUndo(p *proposal) {
	left := p.changes.inForce()
	if len(left) == 0 {
		u.ends.conclude(p, p.undoing.to, p.undoing.reason)
		return
	}
	p.undoing.tries++
	if p.undoing.tries < undoTries {
		p.undoing.retryAt = u.now + undoPause
		u.hastenUndo(p)
		return
	}
	u.ends.conclude(p, StateFailed, fmt.Sprintf("%s; %d of its changes could not be undone: %s", p.undoing.reason, len(left), p.reason))
}

// hastenUndo spares a pause before the next attempt at the end of a session,
// which waits for the answers but not for pauses.
func (u *undoer) hastenUndo(p *proposal) {
	if u.finishing && p.undoing.retryAt > 0 {
		p.undoing.retryAt = max(u.now, 1)
	}
}

// checkUndo repeats an undo that failed, and ends one that nobody answers.
func (u *undoer) checkUndo(p *proposal) {
	switch {
	case p.undoing.retryAt > 0:
		if u.now >= p.undoing.retryAt {
			u.undo(p, p.undoing.to, p.undoing.reason)
		}
	case u.now >= p.deadline:
		u.requests.close(p.undoRequest)
		p.reason = "no answer from the controller"
		u.finishUndo(p)
	}
}
