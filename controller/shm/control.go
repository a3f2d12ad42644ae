// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"math"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Range is a predicate on values, both ends included.
type Range struct {
	// Min is the least value that counts.
	Min uint64
	// Max is the greatest one.
	Max uint64
}

// Parameters is how many integer parameters are in registers.
const Parameters = 6

// PointControl says what a measure point shall deliver.
type PointControl struct {
	// Point is the session's index of the point, 1 to 65535, by which records
	// and aggregates are named.
	Point uint16
	// Aggregate keeps count, sum, least, greatest and histogram.
	Aggregate bool
	// Event writes a record per hit.
	Event bool
	// Duration measures the time spent in the call instead of the value: of
	// hooks, and of functions that are patched at entry and exits. A stub does
	// not see the call's end, and measures the value.
	Duration bool
	// SampleEvery takes one record in so many hits, a power of two. 0 or 1:
	// every hit. Aggregates count every hit in any case.
	SampleEvery uint32
	// Parameter says which integer parameter, 0 to 5, is the value of a stub or
	// patch. Hooks have a value of their own.
	Parameter int
	// Program is what is captured at each hit. Nil: nothing.
	Program *Program
	// Only restricts records and aggregates to hits with these values, with
	// Duration to those that took so many nanoseconds. Nil: all.
	Only *Range
	// Scale converts Only, with Duration. It makes no difference to whether two
	// controls are the same.
	Scale Scale
}

// word is the control word for c.
func (c PointControl) word() uint32 {
	var w uint32
	if c.Aggregate {
		w |= abi.CtlAggregate
	}
	if c.Event {
		w |= abi.CtlEvent
	}
	if c.Duration {
		w |= abi.CtlDuration
	}
	if c.Program != nil {
		w |= abi.CtlProgram
	}
	return w
}

func (c PointControl) validate(index int) error {
	switch n := c.SampleEvery; {
	case index < 0 || index >= PointCount:
		return fmt.Errorf("local point %d: want 0 to %d", index, PointCount-1)
	case c.Point == 0:
		return fmt.Errorf("point index 0: want 1 to %d", math.MaxUint16)
	case !c.Aggregate && !c.Event:
		return fmt.Errorf("point %d delivers neither events nor aggregates", c.Point)
	case c.Program.keyed() && c.Event:
		return fmt.Errorf("point %d asks for records by key", c.Point)
	case c.Parameter < 0 || c.Parameter >= Parameters:
		return fmt.Errorf("point %d takes parameter %d: the first %d integer parameters can be had", c.Point, c.Parameter, Parameters)
	case n&(n-1) != 0:
		return fmt.Errorf("point %d samples one in %d: want a power of two", c.Point, n)
	case c.Only != nil && c.Only.Min > c.Only.Max:
		return fmt.Errorf("point %d: no value is from %d to %d", c.Point, c.Only.Min, c.Only.Max)
	}
	return nil
}

func (c PointControl) equal(d PointControl) bool {
	same := c.Only == d.Only || c.Only != nil && d.Only != nil && *c.Only == *d.Only
	same = same && c.Program.equal(d.Program)
	c.Only, d.Only, c.Program, d.Program = nil, nil, nil, nil
	c.Scale, d.Scale = Scale{}, Scale{}
	return same && c == d
}

// only is the range of what DMLib measures: of durations in ticks.
func (c PointControl) only() Range {
	only := Range{Max: math.MaxUint64}
	if c.Only != nil {
		only = *c.Only
	}
	if c.Duration {
		only.Min = c.Scale.Ticks(only.Min)
	}
	if c.Duration && only.Max < math.MaxUint64 {
		only.Max = c.Scale.Ticks(only.Max+1) - 1
	}
	return only
}
