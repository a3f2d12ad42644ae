// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// proposal is one proposal as it stands.
type proposal struct {
	*attunev1.RecordedProposal // a copy
	objective                  *report.Objective
	wasKept                    bool // once, whatever came of it
}

// States of proposals.
const (
	stateKept    = report.VerdictKept
	stateRefused = "refused"
	stateAdvised = "advised"
	stateEnded   = "ended"
)

// proposals are all that the session remembers, and what it has taken over.
type proposals struct {
	byNumber  map[uint64]*proposal
	unlisted  uint64 // that were forgotten
	inherited []*attunev1.KeptChange

	processes *processes
	tunlets   *tunlets
	own       *owned
}

// take takes over how a proposal stands, unless nobody remembers it: now is nil then. It
// returns how it stood before, the zero value if nobody knew it, and whether an Analyzer
// before has told of it.
func (ps *proposals) take(p *attunev1.RecordedProposal) (before, now *proposal, inherited bool) {
	if p.GetNumber() == 0 {
		return nil, nil, false
	}
	before = cmp.Or(ps.byNumber[p.GetNumber()], &proposal{})
	now = &proposal{proto.CloneOf(p), ps.comparison(p), before.wasKept || p.GetState() == stateKept}
	ps.byNumber[p.GetNumber()] = now
	known := len(ps.inherited)
	for _, ch := range p.GetChanges() {
		ps.inherited = slices.DeleteFunc(ps.inherited, func(k *attunev1.KeptChange) bool { return k.GetId() == ch.GetSpec().GetId() })
	}
	return before, now, len(ps.inherited) < known
}

// comparison returns a proposal's comparison by what judges it; nil: none.
func (ps *proposals) comparison(p *attunev1.RecordedProposal) *report.Objective {
	if ps.own.Objective != nil {
		return comparison(p, ps.own.Objective, true)
	}
	return comparison(p, ps.tunlets.objective(p.GetTunlet()), false)
}

// forget drops those that the session does not remember, and returns them.
func (ps *proposals) forget(o *attunev1.RecordedOmission) (forgotten []*proposal) {
	for _, number := range o.GetProposals() {
		if p := ps.byNumber[number]; p != nil {
			forgotten = append(forgotten, p)
			delete(ps.byNumber, number)
		}
	}
	ps.unlisted = max(ps.unlisted, o.GetProposalsOmitted())
	return forgotten
}

// inOrder returns the proposals in the order in which they came.
func (ps *proposals) inOrder() []*proposal {
	return slices.SortedFunc(maps.Values(ps.byNumber), func(p, q *proposal) int {
		return cmp.Or(cmp.Compare(p.GetProposedNanos(), q.GetProposedNanos()), cmp.Compare(p.GetNumber(), q.GetNumber()))
	})
}

// change returns one change of a proposal as the report of a session has it that
// began at start.
func (ps *proposals) change(p *proposal, ch *attunev1.RecordedChange, start time.Time) report.Change {
	result := ch.GetResult()
	out := report.Change{
		ID: ch.GetSpec().GetId(), Tunlet: p.GetTunlet(), Proposal: p.GetId(), Advice: p.GetAdvice(),
		Knob: ch.GetSpec().GetKnob(), Action: ch.GetAction(),
		Old: report.ValueOf(result.GetOldValue()), New: newValue(ch), SafePoint: result.GetSafePoint(),
		ProposedAt: seconds(p.GetProposedNanos()), StoppedSeconds: seconds(result.GetStoppedNanos()),
		PredictedGain: p.GetPredictedGain(), Prediction: p.GetPrediction(), Why: p.GetWhy(),
		Verdict: p.verdict(), Reason: reason(p, ch), Objective: p.objective,
	}
	if p.objective != nil && p.objective.Own { // the model is about another figure
		out.Prediction = ""
	}
	of := ps.processes.of(ch.GetSpec().GetProcess()).info
	out.Process, out.Host, out.Rank = of.PID, of.Host, of.Rank
	if ch.GetAppliedNanos() > 0 {
		at, sec := start.Add(time.Duration(ch.GetAppliedNanos())), seconds(ch.GetAppliedNanos())
		out.AppliedAt, out.AppliedSeconds = &at, &sec
	}
	if ch.GetUndoneNanos() > 0 && isBack(ch) {
		sec := seconds(ch.GetUndoneNanos())
		out.UndoneSeconds = &sec
	}
	return out
}

func seconds(nanos int64) float64 { return time.Duration(nanos).Seconds() }

// newValue returns the value read back, or else the one asked for.
func newValue(ch *attunev1.RecordedChange) report.Value {
	if v := report.ValueOf(ch.GetResult().GetNewValue()); v.Known() {
		return v
	}
	return report.ValueOf(attunev1.DescribeAction(ch.GetSpec().GetAction()).Value)
}

// reason returns why a change has its verdict: its own trouble first, unless it had taken effect.
func reason(p *proposal, ch *attunev1.RecordedChange) string {
	failed := ch.GetAppliedNanos() == 0 &&
		(ch.GetOutcome() == attunev1.Outcome_OUTCOME_REFUSED || ch.GetOutcome() == attunev1.Outcome_OUTCOME_FAILED)
	switch {
	case failed && ch.GetResult().GetReason() != "":
		return ch.GetResult().GetReason()
	case p.GetReason() == "":
		return p.GetState() + " when this report was written"
	}
	return p.GetReason()
}

// verdict returns the verdict that a proposal's state means.
func (p *proposal) verdict() string {
	switch state := p.GetState(); state {
	case report.VerdictFailed:
		switch {
		case slices.ContainsFunc(p.GetChanges(), notRefused):
			return state
		case slices.ContainsFunc(p.GetChanges(), tookEffect): // and was refused when it was to be made again
			return report.VerdictUndone
		}
		return report.VerdictRefused
	case report.VerdictKept, report.VerdictUndone:
		return state
	}
	return report.VerdictUnjudged
}

func notRefused(ch *attunev1.RecordedChange) bool {
	return ch.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED
}

// advice returns a proposal as advice.
func (ps *proposals) advice(p *proposal) report.Advice {
	out := report.Advice{
		ID: p.GetAdvice(), Tunlet: p.GetTunlet(), Actions: p.actions(), Processes: []int{}, Why: p.GetWhy(),
		PredictedGain: p.GetPredictedGain(), Confidence: p.GetConfidence(), Seconds: seconds(p.GetProposedNanos()),
	}
	for _, ch := range p.GetChanges() {
		if pid := ps.processes.pid(ch.GetSpec().GetProcess()); !slices.Contains(out.Processes, pid) {
			out.Processes = append(out.Processes, pid)
		}
	}
	return out
}

// refused returns a proposal as refused.
func (p *proposal) refused() report.Refused {
	return report.Refused{
		Tunlet: p.GetTunlet(), Proposal: p.GetId(), Actions: p.actions(), Reason: p.GetReason(),
		Times: max(1, int(p.GetTimes())), Seconds: seconds(p.GetProposedNanos()),
	}
}

// actions returns what a proposal does, each action once.
func (p *proposal) actions() []string {
	out := []string{}
	for _, ch := range p.GetChanges() {
		if !slices.Contains(out, ch.GetAction()) {
			out = append(out, ch.GetAction())
		}
	}
	return out
}

// state returns a proposal as the live view has it.
func (p *proposal) state() report.ProposalState {
	out := report.ProposalState{
		Tunlet: p.GetTunlet(), State: p.GetState(), Reason: p.GetReason(),
	}
	processes := map[uint64]bool{}
	for _, ch := range p.GetChanges() {
		processes[ch.GetSpec().GetProcess()] = true
		if knob := ch.GetSpec().GetKnob(); !slices.Contains(out.Knobs, knob) {
			out.Knobs = append(out.Knobs, knob)
		}
	}
	out.Processes = len(processes)
	if gain := report.Finite(p.GetJudgement().GetGain()); gain != nil && !p.GetJudgement().GetFew() {
		out.Gain = *gain
	}
	return out
}

// entryChanges returns the changes of a proposal as a line of the timeline has them.
func (ps *proposals) entryChanges(p *attunev1.RecordedProposal) (out []report.EntryChange) {
	for _, ch := range p.GetChanges() {
		outcome := ""
		if o := ch.GetOutcome(); o != attunev1.Outcome_OUTCOME_UNSPECIFIED {
			outcome = strings.ToLower(strings.TrimPrefix(o.String(), "OUTCOME_"))
		}
		out = append(out, report.EntryChange{
			ID: ch.GetSpec().GetId(), Process: ps.processes.pid(ch.GetSpec().GetProcess()), Knob: ch.GetSpec().GetKnob(), Action: ch.GetAction(),
			Old: report.ValueOf(ch.GetResult().GetOldValue()), New: newValue(ch), Outcome: outcome, SafePoint: ch.GetResult().GetSafePoint(),
		})
	}
	return out
}

// kept returns the changes of a kept proposal that are in force.
func (ps *proposals) kept(p *proposal) (out []*attunev1.KeptChange) {
	for _, ch := range p.GetChanges() {
		of := ps.processes.byHandle[ch.GetSpec().GetProcess()]
		if of == nil || of.ended || ch.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			continue
		}
		out = append(out, &attunev1.KeptChange{
			Id: ch.GetSpec().GetId(), Host: of.info.Host, Pid: int32(of.info.PID), Knob: ch.GetSpec().GetKnob(),
			Tunlet: p.GetTunlet(), Action: ch.GetAction(), Gain: p.GetGain(),
		})
	}
	return out
}
