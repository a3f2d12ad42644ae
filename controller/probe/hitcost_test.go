// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/attune-hpc/attune/controller/capture"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What a hit is reckoned to cost is what bench/probe and bench/dmlib measure.
func TestCostOfHit(t *testing.T) {
	const count, each, sampled = attunev1.Delivery_DELIVERY_AGGREGATE, attunev1.Delivery_DELIVERY_EVENT, attunev1.Delivery_DELIVERY_SAMPLED
	both := attunev1.Place_PLACE_BOTH
	captured := capture.Program{Captures: []capture.Capture{{Source: capture.SourceParameter}}, Value: -1, Key: -1}
	for _, test := range []struct {
		name        string
		placement   placement
		spec        *attunev1.MeasurePoint
		least, most float64
	}{
		{"count by patch", placement{mechanism: MechanismPatch}, &attunev1.MeasurePoint{Delivery: count}, 1.7, 2.5},
		{"count by stub", placement{mechanism: MechanismGOT}, &attunev1.MeasurePoint{Delivery: count}, 1.4, 2},
		{"count of the second parameter", placement{mechanism: MechanismPatch}, &attunev1.MeasurePoint{Delivery: count, Parameter: 1}, 3, 4},
		{"record by patch", placement{mechanism: MechanismPatch}, &attunev1.MeasurePoint{Delivery: each}, 7.5, 8.5},
		{"record by stub", placement{mechanism: MechanismGOT}, &attunev1.MeasurePoint{Delivery: each}, 7.5, 8.5},
		{"sample by patch", placement{mechanism: MechanismPatch}, &attunev1.MeasurePoint{Delivery: sampled}, 3, 4},
		{"sampled durations", placement{mechanism: MechanismPatch}, &attunev1.MeasurePoint{Delivery: sampled, Place: both}, 3, 4},
		{"duration by patch", placement{mechanism: MechanismPatch}, &attunev1.MeasurePoint{Delivery: count, Place: both}, 22, 23},
		{"count by hook", placement{mechanism: MechanismHook}, &attunev1.MeasurePoint{Delivery: count}, 3.5, 4.5},
		{"record by hook", placement{mechanism: MechanismHook}, &attunev1.MeasurePoint{Delivery: each}, 7, 8},
		{"count by a hook of another point", placement{mechanism: MechanismHook, shared: true}, &attunev1.MeasurePoint{Delivery: count}, 7.5, 8.5},
		{"captured values", placement{mechanism: MechanismPatch, captured: captures{program: captured}}, &attunev1.MeasurePoint{Delivery: count}, 33, 34},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.placement.reckon(test.spec); test.placement.cost < test.least || test.placement.cost > test.most {
				t.Errorf("%v ns, want %v to %v", test.placement.cost, test.least, test.most)
			}
		})
	}
}

// A point that the kernel serves, and a patch would for less, is reckoned as the patch is.
func TestCostsAfterMoving(t *testing.T) {
	spec := &attunev1.MeasurePoint{Delivery: attunev1.Delivery_DELIVERY_EVENT}
	p := &placement{mechanism: "uprobe", preferred: true, cost: 500, attachments: make([]heldAttachment, 1)}
	patched := &placement{mechanism: MechanismPatch}
	if patched.reckon(spec); costsOf(p, spec)[0] != patched.cost || p.cost != 500 {
		t.Errorf("%v, want %v", costsOf(p, spec), patched.cost)
	}
}
