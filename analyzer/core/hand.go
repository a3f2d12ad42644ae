// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// overridden notes that the owner of a process, or an administrator, has set a
// knob that a change of ours had set. Their value stays, no tunlet touches the
// knob again, and what else the proposal changed is taken back: it was judged as
// a whole.
func (c *Core) overridden(ch *change, result *attunev1.ActionResult) {
	p, process := ch.proposal, ch.spec.GetProcess()
	if !ch.inForce() {
		return
	}
	ch.outcome, ch.undoneAt = result.GetOutcome(), c.now
	c.hands[knob{ch.spec.GetKnob(), process}] = true
	reason := fmt.Sprintf("%s of process %d was changed by hand", ch.spec.GetKnob(), process)
	if text := result.GetReason(); text != "" {
		reason += ": " + text
	}
	switch p.state {
	case StateJudging, StateAsking, StateKept:
		p.blameless = true
		c.undo(p, StateUndone, reason)
	case StateApplying, StateTurning:
		p.withdrawn, p.blameless = reason, true
	}
}

// byHand says why a knob is left alone that somebody has set by hand; empty:
// nobody has.
func (c *Core) byHand(k knob) string {
	if !c.hands[k] && !c.hands[k.whole()] {
		return ""
	}
	return fmt.Sprintf("knob %s of process %d was changed by hand, and stays as it is", k.name, k.process)
}
