// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Verdict on an applied proposal.
type Verdict uint8

// The verdicts. The zero Verdict is no opinion: the Analyzer judges.
const (
	// Keep the change.
	Keep = Verdict(attunev1.Verdict_VERDICT_KEEP)
	// Undo the change.
	Undo = Verdict(attunev1.Verdict_VERDICT_UNDO)
	// Wait and look longer.
	Wait = Verdict(attunev1.Verdict_VERDICT_WAIT)
)

// Estimate is a robust summary of objective samples.
type Estimate struct {
	// Median, and the bounds of its 95 % confidence interval.
	Median, Low, High float64
	// Samples that it rests on.
	Samples int
}

// Evaluation asks for a verdict.
type Evaluation struct {
	// Proposal that is judged, by id.
	Proposal string
	// Before and After are the objective without and with the change.
	Before, After Estimate
	// Suggested is what the Analyzer would say.
	Suggested Verdict
}

// ByMeasurement is the verdict of a tunlet that knows nothing better than the
// measured objective, of which more is better: what the Analyzer suggests. Only
// where the program made progress before the change and none at all after it,
// there is nothing to compare yet, and it waits. progress names what did not
// happen, e.g. "MPI calls".
func (e Evaluation) ByMeasurement(progress string) (Verdict, string) {
	if e.Suggested == Undo && e.After.Median == 0 && e.Before.Median > 0 {
		return Wait, "no " + progress + " since the change: the program does something else"
	}
	return e.Suggested, ""
}

// ByObjective is ByMeasurement for an objective of which more is better; of one that is better
// when it is lower it is what the Analyzer suggests.
func (e Evaluation) ByObjective(o Objective) (Verdict, string) {
	if o.LowerIsBetter {
		return e.Suggested, ""
	}
	return e.ByMeasurement("progress (" + o.Name + ")")
}

// RetryPause is how long a tunlet pauses after a change that was undone or
// refused: longer than the Analyzer lets a knob rest.
const RetryPause = 12 * time.Second

// ProposalState is where a proposal stands.
type ProposalState uint8

// The states.
const (
	// Refused: policy, a conflict or the session's mode forbids it, or there is
	// nothing to judge it by.
	Refused = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_REFUSED)
	// Applying: on its way.
	Applying = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_APPLYING)
	// Applied: in force, under judgement.
	Applied = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_APPLIED)
	// Kept: judged good.
	Kept = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_KEPT)
	// Undone: taken back.
	Undone = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_UNDONE)
	// Failed: could not be applied.
	Failed = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_FAILED)
	// Advised: given as advice only.
	Advised = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_ADVISED)
	// Lifted: not in force for a turn of the comparison with and without it. Applied
	// follows, of a kept one that is compared once more Kept, or how it ends.
	Lifted = ProposalState(attunev1.ProposalState_PROPOSAL_STATE_LIFTED)
)

// String is the state in a word: refused, applying and so on.
func (s ProposalState) String() string {
	return enumText(attunev1.ProposalState(s), "PROPOSAL_STATE_")
}

// String is the verdict in a word: keep, undo, wait, or nothing of the zero one.
func (v Verdict) String() string {
	if v == 0 {
		return "nothing"
	}
	return enumText(attunev1.Verdict(v), "VERDICT_")
}

// enumText is a value of the protocol in a word.
func enumText(value fmt.Stringer, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

// Final says that nothing more will come of the proposal by itself. A kept one
// can still be withdrawn.
func (s ProposalState) Final() bool {
	return s != Applying && s != Applied && s != Lifted
}

// ProposalChange tells what became of a proposal.
type ProposalChange struct {
	// Proposal by id.
	Proposal string
	// State it is in now.
	State ProposalState
	// Reason for it.
	Reason string
	// Results of the changes, in their order; a change that none is known of has none.
	Results []ChangeResult
	// Earlier is what was proposed, if the tunlet was started again since: the change is
	// in force, and is the tunlet's own to watch over and to withdraw. Nil: the tunlet has
	// proposed it itself.
	Earlier *Proposal
}

// ChangeResult is what became of one change.
type ChangeResult struct {
	// Applied says that the change is in force and was read back.
	Applied bool
	// Reason why it was refused or failed.
	Reason string
	// Old and New are the values before and after, where they can be known.
	Old, New Value
}

func estimateFrom(e *attunev1.Estimate) Estimate {
	return Estimate{
		Median: e.GetMedian(), Low: e.GetLow(), High: e.GetHigh(), Samples: int(e.GetSamples()),
	}
}

func evaluationFrom(r *attunev1.EvaluateRequest) Evaluation {
	return Evaluation{
		Proposal: r.GetProposalId(), Before: estimateFrom(r.GetBefore()),
		After: estimateFrom(r.GetAfter()), Suggested: Verdict(r.GetSuggested()),
	}
}

func proposalChangeFrom(r *attunev1.ProposalChangedRequest) ProposalChange {
	out := ProposalChange{
		Proposal: r.GetProposalId(), State: ProposalState(r.GetState()), Reason: r.GetReason(),
	}
	for _, res := range r.GetResults() {
		out.Results = append(out.Results, ChangeResult{
			Applied: res.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED,
			Reason:  res.GetReason(),
			Old:     Value{res.GetOldValue()}, New: Value{res.GetNewValue()},
		})
	}
	if r.GetEarlier() != nil {
		out.Earlier = proposalFrom(r.GetEarlier())
	}
	return out
}

// Median of the values, which it leaves as they are; 0 without values.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
