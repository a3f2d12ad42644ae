// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/attune-hpc/attune/controller/shm"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What one hit costs the application, nanoseconds, by bench/dmlib and bench/probe
// on a virtual machine with a 2.6 GHz processor. They are not measured again on
// each machine: these are some tens of instructions, which differ little.
const (
	costAggregate = 3
	costEvent     = 7.5
	costDuration  = 16.5
	costStub      = 3 // what a stub adds to a hook
	costPatch     = 4 // what an entry patch adds
	costShared    = 4 // what a hook adds to a point that shares it
)

// Errors of placing.
var (
	errNoDMLib = errors.New("DMLib is not in the process")
	// errExpected: it is placed when DMLib comes, or refused when it does not.
	errExpected = errors.New("DMLib is not in the process yet")
	errBusy     = errors.New("another measure point with other settings has it already")
)

// placeHook turns one of DMLib's hooks on.
func (t *tenant) placeHook(index uint16, spec *attunev1.MeasurePoint, name string) (*placement, error) {
	hook, ok := shm.HookByName(name)
	if !ok {
		return nil, fmt.Errorf("DMLib has no hook %q", name)
	}
	memory := t.process.Memory()
	if memory == nil {
		if p, ok := t.process.(latecomer); ok && p.Expected() {
			return nil, errExpected
		}
		return nil, errNoDMLib
	}
	delivery, captures, err := t.control(index, spec, MechanismHook)
	if err != nil {
		return nil, err
	}
	p := &placement{mechanism: MechanismHook, symbols: []string{name}, captured: captures}
	local := hook.Index
	if owner := t.owner[local]; owner != 0 && owner != index {
		p.reason, p.extra = whyShared, costShared
		local, err = memory.Share(hook.Index, delivery)
	} else {
		err = memory.SetPoint(local, delivery)
	}
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", name, err)
	}
	p.reckon(spec)
	t.owner[local] = index
	p.locals = []int{local}
	return p, nil
}

// whyShared is the reason of points that share a hook.
const whyShared = "another measure point with other settings has the hook as well"

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
		c.Only = &shm.Range{Min: spec.GetMinValue(), Max: spec.GetMaxValue()}
		if c.Only.Max == 0 {
			c.Only.Max = math.MaxUint64
		}
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

func cost(spec *attunev1.MeasurePoint) float64 {
	switch {
	case spec.GetPlace() == attunev1.Place_PLACE_BOTH:
		return costDuration
	case spec.GetDelivery() == attunev1.Delivery_DELIVERY_EVENT:
		return costEvent
	}
	return costAggregate
}
