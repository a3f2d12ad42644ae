// SPDX-License-Identifier: Apache-2.0

package core

import (
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ChangeView is one change as it stands.
type ChangeView struct {
	// ID is unique within the session; empty for a change never admitted.
	ID string
	// Knob is what is changed.
	Knob string
	// Process is the handle of the process.
	Process uint64
	// Action is what is done, see attunev1.ActionText.
	Action string
	// Spec is what was asked for; it is not to be modified.
	Spec *attunev1.Change
	// Outcome is the last outcome.
	Outcome attunev1.Outcome
	// Result is the controller's answer to the request to apply; nil: none.
	Result *attunev1.ActionResult
	// AppliedAt is when it took effect first; 0: it did not.
	AppliedAt time.Duration
	// UndoneAt is when the original value was back; 0: it is not.
	UndoneAt time.Duration
}

// ProposalView is one proposal as it stands.
type ProposalView struct {
	// Number is the same for the same proposal, and greater for one that came later;
	// 0: it is not remembered.
	Number uint64
	// Tunlet is whose it is.
	Tunlet string
	// ID is the tunlet's id of it.
	ID string
	// AdviceID is the same for the same proposal in another run.
	AdviceID string
	// Scope is what its objective is about.
	Scope string
	// Why is the tunlet's reason.
	Why string
	// PredictedGain is the tunlet's prediction, as a ratio; 0: none.
	PredictedGain float64
	// Confidence is the tunlet's, 0 to 1.
	Confidence float64
	// State is where it stands.
	State State
	// Reason is why it is there.
	Reason string
	// ProposedAt is when it came.
	ProposedAt time.Duration
	// DoneAt is when the verdict fell, or it ended otherwise; 0: not yet.
	DoneAt time.Duration
	// Times counts how often it was refused.
	Times int
	// Judgement is the comparison; nil if there was none.
	Judgement *trial.Judgement
	// Prediction is how PredictedGain compares with what was measured.
	Prediction trial.Prediction
	// Gain is the measured gain, as a finite ratio, also as an earlier session
	// measured it; 0: unknown.
	Gain float64
	// Useless says that it was tried to the end, and that no gain was found.
	Useless bool
	// Canary says that it is a part of another proposal, tried first.
	Canary bool
	// Changes are its changes.
	Changes []ChangeView
}

// view returns p as it stands.
func (p *proposal) view() ProposalView {
	v := ProposalView{
		Number: p.number, Tunlet: p.tunlet.name, ID: p.spec.GetId(), AdviceID: p.advice, Scope: p.spec.GetScope(),
		Why: p.spec.GetReason(), PredictedGain: p.spec.GetPredictedGain(), Confidence: p.spec.GetConfidence(),
		State: p.state, Reason: p.reason, ProposedAt: p.proposedAt, DoneAt: p.doneAt,
		Changes: p.changeViews(), Canary: p.whole != nil,
		Useless: p.useless(), Gain: p.gain(), Times: p.times,
	}
	if p.trial.Judgement != nil {
		j := *p.trial.Judgement
		v.Judgement = &j
		v.Prediction = j.Compare(v.PredictedGain)
	}
	return v
}

// changeViews returns the changes of p as they stand.
func (p *proposal) changeViews() []ChangeView {
	out := make([]ChangeView, len(p.changes))
	for i, ch := range p.changes {
		out[i] = ChangeView{
			ID: ch.spec.GetId(), Knob: ch.spec.GetKnob(), Process: ch.spec.GetProcess(), Action: ch.action, Spec: ch.spec,
			Outcome: ch.outcome, Result: ch.result,
			AppliedAt: ch.first, UndoneAt: ch.undoneAt,
		}
	}
	return out
}
