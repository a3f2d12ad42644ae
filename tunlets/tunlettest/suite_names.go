// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"cmp"
	"slices"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// checkNames fails if a measure point or a withdrawal names anything that does
// not exist. Proposals are checked as they come (checkProposal), since what
// they name may not live any more afterwards.
func checkNames(h *Harness, tb TB) {
	tb.Helper()
	for _, id := range h.order {
		checkPoint(h, tb, h.points[id].spec)
	}
	for _, w := range h.Withdrawals {
		if !slices.ContainsFunc(h.Proposals, func(p Proposed) bool { return p.GetId() == w.GetProposalId() }) {
			tb.Errorf("withdraws %q, which it never proposed", w.GetProposalId())
		}
	}
}

func lives(h *Harness, handle uint64) bool {
	return slices.ContainsFunc(h.processes, func(p *Process) bool { return uint64(p.Handle) == handle })
}

func checkPoint(h *Harness, tb TB, p *attunev1.MeasurePoint) {
	tb.Helper()
	if p.GetId() == "" || p.GetHook() == "" && len(p.GetFunction().GetSymbols()) == 0 && p.GetUsdt().GetName() == "" {
		tb.Errorf("measure point %v: want an id and a target", p)
	}
	if p.GetMaxValue() > 0 && p.GetMaxValue() < p.GetMinValue() {
		tb.Errorf("measure point %v: predicate is never true", p)
	}
}

// checkProposal fails if a proposal that has just come is not what it should
// be, or names what does not exist.
func checkProposal(h *Harness, tb TB, p Proposed) {
	tb.Helper()
	if p.GetId() == "" || p.GetReason() == "" || len(p.GetChanges()) == 0 {
		tb.Errorf("proposal %v: want an id, a reason and changes", p)
	}
	if c := p.GetConfidence(); c < 0 || c > 1 || p.GetPredictedGain() < 0 {
		tb.Errorf("proposal %s: confidence %v, predicted gain %v", p.GetId(), c, p.GetPredictedGain())
	}
	if slices.ContainsFunc(h.Proposals, func(o Proposed) bool { return o.GetId() == p.GetId() }) {
		tb.Errorf("proposal id %s is used twice", p.GetId())
	}
	if !slices.ContainsFunc(h.Objectives, func(o *attunev1.ObjectiveSample) bool { return o.GetScope() == p.GetScope() }) {
		tb.Errorf("proposal %s: no sample of objective scope %q before it", p.GetId(), p.GetScope())
	}
	knobs := describedKnobs(h, tb)
	for _, c := range p.GetChanges() {
		name, _, _ := strings.Cut(c.GetKnob(), "@") // a place of it
		knob := knobs[name]
		switch {
		case !lives(h, c.GetProcess()):
			tb.Errorf("proposal %s changes process %d, which does not live", p.GetId(), c.GetProcess())
		case knob == nil:
			tb.Errorf("proposal %s changes knob %q, which is not described", p.GetId(), c.GetKnob())
		case c.GetAction().GetKind() == nil:
			tb.Errorf("proposal %s: change of %q has no action", p.GetId(), c.GetKnob())
		default:
			foreign := attunev1.ForeignTo(knob, c.GetAction())
			if reason := cmp.Or(foreign, attunev1.OutOfBounds(knob, attunev1.DescribeAction(c.GetAction()).Value)); reason != "" {
				tb.Errorf("proposal %s: %s", p.GetId(), reason)
			}
		}
	}
}

// describedKnobs are the knobs that the tunlet describes, by name.
func describedKnobs(h *Harness, tb TB) map[string]*attunev1.Knob {
	tb.Helper()
	ctx, cancel := h.Context()
	defer cancel()
	d, err := h.Client.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: []string{sdk.APIVersion}})
	if err != nil {
		tb.Fatalf("describe: %v", err)
	}
	knobs := map[string]*attunev1.Knob{}
	for _, k := range d.GetKnobs() {
		knobs[k.GetName()] = k
	}
	return knobs
}
