// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math"
	"strings"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// entry writes to the timeline, with the present time.
func (s *Session) entry(e report.Entry) {
	e.Time = s.cfg.now()
	e.Seconds = s.since(e.Time).Seconds()
	s.cfg.Entry(e)
}

// remark keeps a remark for the report and writes it to the timeline.
func (s *Session) remark(r report.Remark) {
	r.Seconds = s.now().Seconds()
	if len(s.remarks) < maxRemarks {
		s.remarks = append(s.remarks, r)
	}
	s.entry(report.Entry{Kind: "remark", Tunlet: r.From, Process: r.Process, Text: r.Text})
}

// record writes a decision of the core to the timeline.
func (s *Session) record(r core.Record) {
	e := report.Entry{Kind: r.Kind, Tunlet: r.Tunlet, Proposal: r.Proposal, Text: r.Reason}
	for _, ch := range r.Changes {
		e.Changes = append(e.Changes, report.EntryChange{
			ID: ch.ID, Process: s.pidOf(ch.Process), Knob: ch.Knob, Action: ch.Action,
			Old: report.ValueOf(ch.Result.GetOldValue()), New: newValue(ch),
			Outcome: outcomeName(ch.Outcome), SafePoint: ch.Result.GetSafePoint(),
		})
	}
	if r.Judgement != nil {
		e.Objective = s.objective(r.Tunlet, "", r.Judgement)
	}
	s.entry(e)
	s.cfg.Changed()
}

// newValue returns the value read back, or else the one asked for.
func newValue(ch core.ChangeView) report.Value {
	if v := report.ValueOf(ch.Result.GetNewValue()); v.Known() {
		return v
	}
	return report.ValueOf(ch.Wanted)
}

// outcomeName returns an outcome in a word; empty: none yet.
func outcomeName(o attunev1.Outcome) string {
	if o == attunev1.Outcome_OUTCOME_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(o.String(), "OUTCOME_"))
}

// info returns what a tunlet said of itself, also after its end.
func (s *Session) info(name string) *attunev1.DescribeResponse {
	if t := s.tunlets[name]; t != nil {
		return t.info
	}
	if t := s.gone[name]; t != nil {
		return t.info
	}
	return nil
}

// objective returns a comparison as the report has it.
func (s *Session) objective(tunlet, scope string, j *core.Judgement) *report.Objective {
	o := s.info(tunlet).GetObjective()
	out := &report.Objective{
		Name: o.GetName(), Unit: o.GetUnit(), LowerIsBetter: o.GetLowerIsBetter(), Scope: scope,
		Before: estimate(j.Before), After: estimate(j.After), Turns: j.Turns,
	}
	if j.Before.Samples > 0 && j.After.Samples > 0 {
		out.P = &j.P
		out.Gain = finite(j.Gain)
	}
	return out
}

// estimate returns an estimate as the report has it.
func estimate(e core.Estimate) report.Estimate {
	out := report.Estimate{Median: e.Median, Samples: e.Samples}
	if finite(e.Low) != nil && finite(e.High) != nil {
		out.Low, out.High = &e.Low, &e.High
	}
	return out
}

// finite returns nil for a number that JSON has no word for.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}
