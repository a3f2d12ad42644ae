// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestFiguresThatAreNoNumbers: whatever a recording says was measured, there is a report of
// it in all forms, and a line in the timeline.
func TestFiguresThatAreNoNumbers(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	level := func(median float64) *attunev1.Estimate {
		return &attunev1.Estimate{Median: median, Low: -inf, High: inf, Samples: 9}
	}
	for name, j := range map[string]*attunev1.RecordedJudgement{
		"nothing":     {Before: level(nan), After: level(inf), Gain: nan, Low: nan, High: nan, P: nan, Turns: 2},
		"no low end":  {Before: level(2), After: level(1), Gain: 0.5, Low: nan, High: 0.9, P: 0.01, Turns: 8},
		"no high end": {Before: level(1), After: level(2), Gain: 2, Low: 1.5, High: inf, P: 0.01, Turns: 8},
		"infinite":    {Before: level(0), After: level(inf), Gain: inf, Low: 3, High: inf, P: 0.01, Turns: 8},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAccount()
			var entries []report.Entry
			timeline := NewTimeline(a, func(e report.Entry) { entries = append(entries, e) })
			p := step(1, stateKept, 0, attunev1.Outcome_OUTCOME_APPLIED)
			p.Judgement = j
			for _, f := range []*attunev1.RecordingFrame{
				{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{Objective: &attunev1.Objective{Name: "score"}}}},
				{What: &attunev1.RecordingFrame_Measured{Measured: &attunev1.RecordedMeasured{Value: inf, EndNanos: 1e9}}},
				{What: &attunev1.RecordingFrame_Measured{Measured: &attunev1.RecordedMeasured{Value: -inf, EndNanos: 2e9}}},
				{What: &attunev1.RecordingFrame_Decision{Decision: &attunev1.RecordedDecision{Kind: "kept", Proposal: p}}},
			} {
				a.Take(f)
				timeline.Take(f)
			}
			r := a.Report(2e9)
			if len(r.Changes) != 1 || r.Changes[0].Objective == nil || r.Objective == nil {
				t.Fatalf("report %+v", r)
			}
			if err := errors.Join(r.EncodeJSON(io.Discard), r.EncodeHTML(io.Discard), r.WriteText(io.Discard, report.TextOptions{})); err != nil {
				t.Error(err)
			}
			if _, err := json.Marshal(entries); err != nil || len(entries) != 2 {
				t.Errorf("%d lines, error %v", len(entries), err)
			}
		})
	}
}

// TestShownObjectives: the live view has no place for values that nothing is judged by.
func TestShownObjectives(t *testing.T) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tunlet{Tunlet: &attunev1.RecordedTunlet{Info: &attunev1.DescribeResponse{Name: "t"}}}})
	for _, value := range []float64{3, -1, math.NaN(), math.Inf(1)} {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Reaction{Reaction: &attunev1.RecordedReaction{
			Tunlet: "t", Reaction: &attunev1.Reaction{Objectives: []*attunev1.ObjectiveSample{{Scope: "app", Value: value}}},
		}}})
	}
	if shown := a.Snapshot(0).Objectives; len(shown) != 1 || shown[0].Value != 3 {
		t.Errorf("shown %+v", shown)
	}
}
