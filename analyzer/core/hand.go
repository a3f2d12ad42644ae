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
	c.restraints.leave(ch.knob())
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
