// SPDX-License-Identifier: Apache-2.0

package core

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// view returns p as it stands. It shares messages that nobody modifies any more.
func (p *proposal) view() *attunev1.RecordedProposal {
	v := &attunev1.RecordedProposal{
		Number: p.number, Tunlet: p.tunlet.name, Id: p.spec.GetId(), Advice: p.advice, Scope: p.spec.GetScope(),
		Why: p.spec.GetReason(), PredictedGain: p.spec.GetPredictedGain(), Confidence: p.spec.GetConfidence(),
		State: p.state.String(), Reason: p.reason, ProposedNanos: int64(p.proposedAt), Times: uint32(p.times),
		Useless: p.useless(), Canary: p.whole != nil, Gain: p.gain(),
	}
	if j := p.trial.Judgement; j != nil {
		v.Prediction = string(j.Compare(v.PredictedGain))
		v.Judgement = &attunev1.RecordedJudgement{
			Before: j.Before.Proto(), After: j.After.Proto(), Gain: j.Gain, P: j.P, Turns: uint32(j.Turns),
			Low: j.Low, High: j.High, Events: uint32(j.Events), Windows: uint32(j.Windows), Few: j.Few,
		}
	}
	for _, ch := range p.changes {
		v.Changes = append(v.Changes, &attunev1.RecordedChange{
			Spec: ch.spec, Action: ch.action, Outcome: ch.outcome, Result: ch.result,
			AppliedNanos: int64(ch.first), UndoneNanos: int64(ch.undoneAt),
		})
	}
	return v
}
