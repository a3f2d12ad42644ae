// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Host is the Analyzer as a tunlet sees it during one call: it tells the time
// and collects what the tunlet wants. Nothing happens before the call returns.
// A Host is valid during its call, in the goroutine of the call.
type Host struct {
	now      time.Time
	reaction *attunev1.Reaction
	ledger   *ledger
	explains bool
	said     map[string]bool // the server's: what people have been told once
}

// Now is the time of what the tunlet is being told, by the session's clock, which goes on
// evenly where the time of day is set. Tunlets use it and never the machine's clock, so
// that they behave the same live, in tests and in a replay. It never goes back.
func (h *Host) Now() time.Time { return h.now }

// maxSaid bounds what people are told once, such as mistakes.
const maxSaid = 20

// remarkOnce is Remark, unless it has said that already.
func (h *Host) remarkOnce(process Handle, format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	if len(h.said) < maxSaid && !h.said[text] {
		h.said[text] = true
		h.Remark(process, "%s", text)
	}
}

// AddPoint asks for a measure point. Hits come only after a PointChange that
// says Placed. A point that says nothing sensible is not asked for; a remark says why.
func (h *Host) AddPoint(p Point) {
	if err := p.Check(); err != nil {
		h.remarkOnce(0, "measure point %q is not asked for: %v", p.ID, err)
		return
	}
	spec := p.proto()
	h.ledger.asked(spec)
	h.reaction.AddPoints = append(h.reaction.AddPoints, spec)
}

// RemovePoint gives a measure point back; unknown ids are ignored.
func (h *Host) RemovePoint(id string) {
	h.reaction.RemovePoints = append(h.reaction.RemovePoints, id)
	h.ledger.removed(id)
}

// Propose proposes changes. The objective needs samples of the proposal's
// scope from before it, or the change cannot be judged.
func (h *Host) Propose(p Proposal) {
	h.reaction.Proposals = append(h.reaction.Proposals, p.proto())
}

// Withdraw asks for a proposal in force to be undone.
func (h *Host) Withdraw(proposal, reason string) {
	h.reaction.Withdrawals = append(h.reaction.Withdrawals, &attunev1.Withdrawal{
		ProposalId: proposal, Reason: reason,
	})
}

// WithdrawIn asks for the changes of a kept proposal to be undone in some of
// its processes, while they stay in the others. A proposal that is not judged
// yet is undone as a whole.
func (h *Host) WithdrawIn(proposal string, processes []Handle, reason string) {
	w := &attunev1.Withdrawal{ProposalId: proposal, Reason: reason}
	for _, p := range processes {
		w.Processes = append(w.Processes, uint64(p))
	}
	h.reaction.Withdrawals = append(h.reaction.Withdrawals, w)
}

// Objective reports one value of the objective, over the time since the last
// one of the same scope, ending now. The scope is the tunlet's own name for
// what the value is about; for one process it is [Handle.Scope]. A value below 0, above 1e100
// or no number is not reported, for what counts is how many times better one is than another; a
// remark says so.
func (h *Host) Objective(scope string, value float64) {
	if err := attunev1.CheckObjective(value); err != nil {
		h.remarkOnce(0, "the objective in scope %q: %v", scope, err)
		return
	}
	h.reaction.Objectives = append(h.reaction.Objectives, &attunev1.ObjectiveSample{
		Scope: scope, Value: value, UnixNano: h.now.UnixNano(),
	})
}

// Remark says a sentence to people: log, watch view and report. Process 0
// means none in particular. It formats like fmt.Sprintf.
func (h *Host) Remark(process Handle, format string, arguments ...any) {
	h.reaction.Remarks = append(h.reaction.Remarks, &attunev1.Remark{
		Text: fmt.Sprintf(format, arguments...), Process: uint64(process),
	})
}

// Explain says to the tunlet's author why it decides as it does, if the author has asked
// for that (attune tunlet run --replay FILE --explain NAME): nobody else reads it, and
// otherwise it does nothing. Process 0 means none in particular. It formats like
// fmt.Sprintf.
func (h *Host) Explain(process Handle, format string, arguments ...any) {
	if h.explains {
		h.reaction.Explanations = append(h.reaction.Explanations, &attunev1.Remark{
			Text: fmt.Sprintf(format, arguments...), Process: uint64(process),
		})
	}
}

// Explains says whether the author has asked for explanations, for those that take more
// than a call of Explain.
func (h *Host) Explains() bool { return h.explains }
