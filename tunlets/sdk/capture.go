// SPDX-License-Identifier: Apache-2.0

package sdk

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// CaptureType says what a captured value is.
type CaptureType uint8

// The types. The zero CaptureType is U64; of an argument that its static probe declares
// signed, I64.
const (
	I8      = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_I8)
	I16     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_I16)
	I32     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_I32)
	I64     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_I64)
	U8      = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_U8)
	U16     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_U16)
	U32     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_U32)
	U64     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_U64)
	Pointer = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_POINTER)
	F32     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_F32)
	F64     = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_F64)
	String  = CaptureType(attunev1.CaptureType_CAPTURE_TYPE_STRING)
)

// Capture is one value that a point takes at each hit. It is made by
// [Parameter], [Returned], [Global], [Thread], [CPU] or [CallSite].
type Capture struct {
	pb *attunev1.Capture
}

// Parameter is parameter n of a function, 0 = first. Floating point parameters
// (F32 or F64, not behind a pointer) are counted apart from all others. With
// offsets it is what the parameter leads to: each offset is added to the address
// so far and memory read there, all but the last time an address.
func Parameter(name string, n uint32, as CaptureType, offsets ...int32) Capture {
	return capture(name, as, offsets, &attunev1.Capture{Source: &attunev1.Capture_Parameter{Parameter: n}})
}

// Returned is what a function returns, or leads to. Not for Entry.
func Returned(name string, as CaptureType, offsets ...int32) Capture {
	return capture(name, as, offsets, &attunev1.Capture{Source: &attunev1.Capture_Returned{Returned: true}})
}

// Global is a global variable of the object, a pattern; "": whichever object has
// it. Offsets begin at its address; without any its content is taken.
func Global(name, object, symbol string, as CaptureType, offsets ...int32) Capture {
	return capture(name, as, offsets, &attunev1.Capture{Source: &attunev1.Capture_Global{
		Global: &attunev1.GlobalVariable{Object: object, Symbol: symbol},
	}})
}

// Thread is the id of the thread, as a key; records have it anyway.
func Thread(name string) Capture {
	return circumstance(name, attunev1.CaptureContext_CAPTURE_CONTEXT_THREAD)
}

// CPU is the number of the CPU.
func CPU(name string) Capture { return circumstance(name, attunev1.CaptureContext_CAPTURE_CONTEXT_CPU) }

// CallSite is the address that the call returns to.
func CallSite(name string) Capture {
	return circumstance(name, attunev1.CaptureContext_CAPTURE_CONTEXT_CALL_SITE)
}

func circumstance(name string, what attunev1.CaptureContext) Capture {
	return capture(name, U64, nil, &attunev1.Capture{Source: &attunev1.Capture_Context{Context: what}})
}

func capture(name string, as CaptureType, offsets []int32, pb *attunev1.Capture) Capture {
	pb.Name, pb.Type, pb.Dereference = name, attunev1.CaptureType(as), offsets
	return Capture{pb}
}

// Limit bounds a string to so many bytes, 256 at most; without it 64.
func (c Capture) Limit(bytes uint32) Capture {
	c.pb.StringLimit = bytes
	return c
}

// Comparison of a captured value with a constant.
type Comparison uint8

// The comparisons.
const (
	Equal        = Comparison(attunev1.Comparison_COMPARISON_EQUAL)
	NotEqual     = Comparison(attunev1.Comparison_COMPARISON_NOT_EQUAL)
	Less         = Comparison(attunev1.Comparison_COMPARISON_LESS)
	LessEqual    = Comparison(attunev1.Comparison_COMPARISON_LESS_EQUAL)
	Greater      = Comparison(attunev1.Comparison_COMPARISON_GREATER)
	GreaterEqual = Comparison(attunev1.Comparison_COMPARISON_GREATER_EQUAL)
)

// String is the comparison in words: equal, not_equal and so on.
func (c Comparison) String() string { return enumText(attunev1.Comparison(c), "COMPARISON_") }

// Condition must hold for a hit to count. It never does for a value that could
// not be read.
type Condition struct {
	// Capture is the name of a capture, no string.
	Capture string
	// Mask of the bits to compare, for integers; 0: all.
	Mask uint64
	// Is says how to compare.
	Is Comparison
	// Operand to compare with.
	Operand Value
}

// addCaptures fills in what a point captures.
func (p Point) addCaptures(out *attunev1.MeasurePoint) {
	for _, c := range p.Captures {
		out.Captures = append(out.Captures, c.pb)
	}
	for _, c := range p.Where {
		out.Predicates = append(out.Predicates, &attunev1.Predicate{
			Capture: c.Capture, Mask: c.Mask, Comparison: attunev1.Comparison(c.Is), Operand: c.Operand.pb,
		})
	}
	out.ValueCapture, out.KeyCapture, out.MaxKeys = p.Value, p.Key, p.MaxKeys
}
