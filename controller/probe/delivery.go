// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"math"
	"math/bits"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/shm"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// control is what DMLib is told to deliver, but for captures.
func control(index uint16, spec *attunev1.MeasurePoint) shm.PointControl {
	c := shm.PointControl{Point: index, Parameter: int(min(spec.GetParameter(), shm.Parameters-1)), Duration: spec.GetPlace() == attunev1.Place_PLACE_BOTH}
	switch spec.GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT:
		c.Event = true
	case attunev1.Delivery_DELIVERY_SAMPLED:
		c.Event = true
		c.SampleEvery = powerOfTwo(spec.GetSampleEvery())
	default:
		c.Aggregate = true
	}
	if spec.GetMinValue() > 0 || spec.GetMaxValue() > 0 {
		c.Only = &shm.Range{Min: spec.GetMinValue(), Max: cmp.Or(spec.GetMaxValue(), math.MaxUint64)}
	}
	return c
}

// powerOfTwo rounds up.
func powerOfTwo(n uint32) uint32 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len32(n-1)
}

// asked is the level that a point asks for.
func asked(spec *attunev1.MeasurePoint) budget.Level {
	switch spec.GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT:
		return budget.Each
	case attunev1.Delivery_DELIVERY_SAMPLED:
		return budget.Sampled
	}
	return budget.Aggregated
}

// at is a point at a level of delivery.
func at(spec *attunev1.MeasurePoint, level budget.Level) *attunev1.MeasurePoint {
	out := proto.CloneOf(spec)
	switch level {
	case budget.Each:
		out.Delivery = attunev1.Delivery_DELIVERY_EVENT
	case budget.Sampled:
		out.Delivery = attunev1.Delivery_DELIVERY_SAMPLED
		out.SampleEvery = max(spec.GetSampleEvery(), budget.SampleEvery)
	default:
		out.Delivery = attunev1.Delivery_DELIVERY_AGGREGATE
	}
	return out
}

// delivered is a point at a level of delivery, which may be the one it asks for.
func delivered(spec *attunev1.MeasurePoint, level budget.Level) *attunev1.MeasurePoint {
	if level == asked(spec) {
		return spec
	}
	return at(spec, level)
}
