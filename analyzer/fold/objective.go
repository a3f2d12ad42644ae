// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"math"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// comparison returns a proposal's comparison by an objective, which is the owner's or not, as the
// report has it; nil: none.
func comparison(p *attunev1.RecordedProposal, o *attunev1.Objective, own bool) *report.Objective {
	j := p.GetJudgement()
	if j == nil {
		return nil
	}
	out := &report.Objective{
		Name: o.GetName(), Unit: o.GetUnit(), LowerIsBetter: o.GetLowerIsBetter(), Scope: p.GetScope(),
		Before: estimate(j.GetBefore()), After: estimate(j.GetAfter()), Turns: int(j.GetTurns()), Own: own,
	}
	if j.GetWindows() > 0 {
		out.Events, out.Windows, out.TooFew = int(j.GetEvents()), int(j.GetWindows()), j.GetFew()
	}
	if j.GetBefore().GetSamples() > 0 && j.GetAfter().GetSamples() > 0 && !j.GetFew() {
		out.P, out.Gain = report.Finite(j.GetP()), report.Finite(j.GetGain())
		out.GainLow, out.GainHigh = within(j)
	}
	return out
}

// within returns the ends of the interval of a gain; nil where it has none.
func within(j *attunev1.RecordedJudgement) (low, high *float64) {
	if j.GetLow() == 0 && j.GetHigh() > math.MaxFloat64 {
		return nil, nil
	}
	return report.Finite(j.GetLow()), report.Finite(j.GetHigh())
}

// estimate returns an estimate as the report has it; of one that is no number, nothing is known.
func estimate(e *attunev1.Estimate) report.Estimate {
	if report.Finite(e.GetMedian()) == nil {
		return report.Estimate{}
	}
	out := report.Estimate{Median: e.GetMedian(), Samples: int(e.GetSamples())}
	if low, high := report.Finite(e.GetLow()), report.Finite(e.GetHigh()); low != nil && high != nil {
		out.Low, out.High = low, high
	}
	return out
}
