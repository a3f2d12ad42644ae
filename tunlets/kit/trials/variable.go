// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"math"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/search"
)

// Variable is a global variable of a program, for which a value is to be found: its name is the
// knob's, which is an integer or a real.
type Variable struct {
	search.Knob

	// Object is a pattern of the base name of what has it.
	Object string
	// Size is 4 or 8 bytes.
	Size uint32
}

// Set is the action that gives it a value.
func (v Variable) Set(at float64) sdk.Action {
	return sdk.SetVariable(v.Object, v.Name, v.Size, v.value(at))
}

// Global is the capture of it, by the name of value.
func (v Variable) Global(name string) sdk.Capture { return sdk.Global(name, v.Object, v.Name, v.as()) }

// as is what the variable is captured as: of a real its bits, since as a value it
// would be cut to an integer.
func (v Variable) as() sdk.CaptureType {
	if v.Size == 8 {
		return sdk.I64
	}
	return sdk.I32
}

// bits are those that a capture has for a value.
func (v Variable) bits(at float64) uint64 {
	switch {
	case v.Kind == search.Integer:
		return uint64(int64(at))
	case v.Size == 4:
		return uint64(int64(int32(math.Float32bits(float32(at)))))
	}
	return math.Float64bits(at)
}

// number is the value of which a capture has the bits.
func (v Variable) number(bits uint64) float64 {
	switch {
	case v.Kind == search.Integer:
		return float64(int64(bits))
	case v.Size == 4:
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

// alike says that two values are the same, or so near in the range that trials could
// not tell them apart.
func (v Variable) alike(a, b float64) bool {
	if v.Kind == search.Integer {
		return a == b
	}
	distance := math.Abs(a-b) / (v.Max - v.Min)
	if v.Log {
		distance = math.Abs(math.Log(a/b)) / math.Log(v.Max/v.Min)
	}
	return distance < 0.01
}

// value is what the variable is set to.
func (v Variable) value(at float64) sdk.Value {
	if v.Kind == search.Integer {
		return sdk.Int(int64(at))
	}
	return sdk.Real(at)
}
