// SPDX-License-Identifier: Apache-2.0

package probe

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// hitCost is what DMLib adds to a call by one mechanism, nanoseconds: for a count, a record
// of each call and a duration.
type hitCost struct{ count, record, duration float64 }

// hitCosts were measured on virtual machines with processors of 2.6 GHz: hooks by bench/dmlib,
// the others by bench/probe (docs/design/0073). They are not measured again on each machine:
// a count is some tens of instructions, which differ little, and a record is the reading of the
// clock, which takes 7 to 10 ns. Stubs see entries only, and time nothing.
var hitCosts = map[string]hitCost{
	MechanismHook:  {count: 4, record: 7.5, duration: 16.5},
	MechanismGOT:   {count: 1.9, record: 8.0},
	MechanismPatch: {count: 2.3, record: 8.3, duration: 22.6},
}

const (
	// costInC is what a count by a stub or a patch takes more that DMLib's assembly leaves
	// to C, and costRecordInC a record, which waits for the clock meanwhile.
	costInC, costRecordInC = 1.3, 0.2
	costShared             = 4 // what a hook adds to a point that shares it
)

// costOfHit is what a hit by DMLib costs by a mechanism, without the capturing itself.
func costOfHit(mechanism string, spec *attunev1.MeasurePoint, captured bool) float64 {
	costs := hitCosts[mechanism]
	sampled := spec.GetDelivery() == attunev1.Delivery_DELIVERY_SAMPLED
	inC := mechanism != MechanismHook && (sampled || captured || spec.GetParameter() > 0)
	switch {
	case spec.GetPlace() == attunev1.Place_PLACE_BOTH && !sampled:
		return costs.duration
	case spec.GetDelivery() == attunev1.Delivery_DELIVERY_EVENT && inC:
		return costs.record + costRecordInC
	case spec.GetDelivery() == attunev1.Delivery_DELIVERY_EVENT:
		return costs.record
	case inC:
		return costs.count + costInC
	}
	return costs.count
}
