// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"math"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxChanges bounds the changes of one proposal: one knob in each rank of
// a large node, several times over.
const maxChanges = 4096

// malformed says why a proposal can not be considered at all.
func malformed(p *proposal, runs func(process uint64) bool) string {
	switch {
	case p.spec.GetId() == "":
		return "the proposal has no id"
	case len(p.changes) == 0:
		return "the proposal changes nothing"
	case len(p.changes) > maxChanges:
		return fmt.Sprintf("the proposal has %d changes; at most %d are allowed", len(p.changes), maxChanges)
	case notRatio(p.spec.GetPredictedGain()):
		return fmt.Sprintf("the predicted gain is %v; it has to be a ratio, or 0 where none is predicted", p.spec.GetPredictedGain())
	case notRatio(p.spec.GetConfidence()) || p.spec.GetConfidence() > 1:
		return fmt.Sprintf("the confidence is %v; it has to be from 0 to 1", p.spec.GetConfidence())
	}
	seen := map[knob]bool{}
	for _, ch := range p.changes {
		k := ch.knob()
		if seen[k] {
			return fmt.Sprintf("knob %s of process %d is named twice", k.name, k.process)
		}
		seen[k] = true
		if reason := badChange(p.tunlet, ch, runs); reason != "" {
			return reason
		}
	}
	return ""
}

// notRatio reports whether v is negative, infinite or not a number: neither JSON nor
// the knowledge store can hold the latter two.
func notRatio(v float64) bool { return !(v >= 0) || math.IsInf(v, 1) }

// badChange says why a change is not acceptable from this tunlet.
func badChange(t *tunlet, ch *change, runs func(process uint64) bool) string {
	name := ch.spec.GetKnob()
	k := t.knobs[knob{name: name}.whole().name]
	switch {
	case ch.action == "":
		return fmt.Sprintf("knob %s: no action given", name)
	case k == nil:
		return fmt.Sprintf("knob %s is not among those the tunlet declares", name)
	case !runs(ch.spec.GetProcess()):
		return fmt.Sprintf("process %d is not known, or has ended", ch.spec.GetProcess())
	}
	if foreign := attunev1.ForeignTo(k, ch.spec.GetAction()); foreign != "" {
		return foreign
	}
	return attunev1.OutOfBounds(k, attunev1.DescribeAction(ch.spec.GetAction()).Value)
}
