// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"github.com/attune-hpc/attune/dmlib/abi"
	"slices"
)

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// Bounds of a program, which make the work of a hit bounded.
const (
	// MaxCaptures of a point.
	MaxCaptures = abi.Captures
	// MaxPredicates of a point.
	MaxPredicates = abi.Predicates
	// MaxSteps is how many times one capture may read memory.
	MaxSteps = abi.Steps
	// MaxString is the longest string in bytes; MaxStrings the sum of the
	// limits of all strings of a point.
	MaxString  = abi.String
	MaxStrings = abi.Strings
	// MaxKeys is the most keys that are kept apart.
	MaxKeys = abi.Keys

	defaultString = 64
	defaultKeys   = 256

	// IntegerParameters and FloatParameters are passed in registers (System V
	// psABI for x86-64, 3.2.3).
	IntegerParameters = 6
	FloatParameters   = 8
)

// None is in place of the index of a capture.
const None = -1

// Source of a capture. The numbers are those of program.h.
type Source uint8

// The sources.
const (
	// SourceParameter is integer or address parameter Index.
	SourceParameter Source = abi.FromParameter
	// SourceFloatParameter is floating point parameter Index.
	SourceFloatParameter Source = abi.FromFloatParameter
	// SourceReturned is the integer or address that the function returns.
	SourceReturned Source = abi.FromReturned
	// SourceFloatReturned is the floating point number that it returns.
	SourceFloatReturned Source = abi.FromFloatReturned
	// SourceConstant is Value.
	SourceConstant Source = abi.FromConstant
	// SourceGlobal is the address of Global.
	SourceGlobal Source = abi.FromConstant + 1
	// SourceThread is the thread id.
	SourceThread Source = abi.FromThread
	// SourceCPU is the number of the CPU.
	SourceCPU Source = abi.FromCPU
	// SourceCallSite is the return address of the call.
	SourceCallSite Source = abi.FromCallSite
	// SourceStack is the calls under way: a key only.
	SourceStack Source = abi.FromStack
)

// Type of a captured value. The numbers are those of program.h and of the
// protocol.
type Type uint8

// The types.
const (
	TypeI8      = Type(attunev1.CaptureType_CAPTURE_TYPE_I8)
	TypeI16     = Type(attunev1.CaptureType_CAPTURE_TYPE_I16)
	TypeI32     = Type(attunev1.CaptureType_CAPTURE_TYPE_I32)
	TypeI64     = Type(attunev1.CaptureType_CAPTURE_TYPE_I64)
	TypeU8      = Type(attunev1.CaptureType_CAPTURE_TYPE_U8)
	TypeU16     = Type(attunev1.CaptureType_CAPTURE_TYPE_U16)
	TypeU32     = Type(attunev1.CaptureType_CAPTURE_TYPE_U32)
	TypeU64     = Type(attunev1.CaptureType_CAPTURE_TYPE_U64)
	TypePointer = Type(attunev1.CaptureType_CAPTURE_TYPE_POINTER)
	TypeF32     = Type(attunev1.CaptureType_CAPTURE_TYPE_F32)
	TypeF64     = Type(attunev1.CaptureType_CAPTURE_TYPE_F64)
	TypeString  = Type(attunev1.CaptureType_CAPTURE_TYPE_STRING)
	TypeSized   = Type(attunev1.CaptureType_CAPTURE_TYPE_SIZED_STRING)
)

// Signed says that values are in two's complement.
func (t Type) Signed() bool { return t >= TypeI8 && t <= TypeI64 }

// Float says that values are floating point numbers.
func (t Type) Float() bool { return t == TypeF32 || t == TypeF64 }

// Text says that values are strings.
func (t Type) Text() bool { return t == TypeString || t == TypeSized }

// Global names a variable whose address is found per process.
type Global struct {
	// Object is a pattern for the object's base name; empty: any.
	Object string
	// Symbol is the variable's name.
	Symbol string
}

// Capture is one value.
type Capture struct {
	Name   string
	Source Source
	// Type is what is read in the end.
	Type Type
	// Index of a parameter within its class.
	Index int
	// Value of a constant, in 64 bits as its type has it.
	Value uint64
	// Global is the variable of SourceGlobal.
	Global Global
	// Limit of a string, bytes; 0 for anything else.
	Limit int
	// Dereference holds the offsets of the steps through memory.
	Dereference []int32
	// StaysMapped says of a variable that its memory stays for as long as the
	// program lives, so that DMLib may read it without asking the kernel. Who
	// finds the address knows.
	StaysMapped bool
}

// AtReturn says that the capture exists only when the function returns.
func (c Capture) AtReturn() bool {
	return c.Source == SourceReturned || c.Source == SourceFloatReturned
}

// Text says that the value is no number: a string, or a stack.
func (c Capture) Text() bool { return c.Type.Text() || c.Source == SourceStack }

// Operator of a predicate. The numbers are those of program.h and of the
// protocol.
type Operator uint8

// Predicate is a condition on a capture.
type Predicate struct {
	// Capture is its index.
	Capture int
	// Operator compares.
	Operator Operator
	// Mask of the bits to compare; all ones: all.
	Mask uint64
	// Operand in 64 bits, as the capture's type has it.
	Operand uint64
}

// Program is what a measure point takes at each hit. The zero Program takes
// nothing; see [Program.Empty].
type Program struct {
	Captures   []Capture
	Predicates []Predicate
	// Value is the capture that is summed up, Key the one that aggregates are
	// kept apart by; None: none.
	Value, Key int
	// MaxKeys is how many keys are kept apart; 0 without a key.
	MaxKeys int
}

// Empty says that the point needs no program: its own value is all it takes.
func (p Program) Empty() bool { return len(p.Captures) == 0 }

// KeyText says that the key is no number.
func (p Program) KeyText() bool {
	return p.Key >= 0 && p.Key < len(p.Captures) && p.Captures[p.Key].Text()
}

// KeyStack says that the key is the stack.
func (p Program) KeyStack() bool { return p.KeyText() && p.Captures[p.Key].Source == SourceStack }

// Globals lists the variables whose addresses Encode needs, in its order.
func (p Program) Globals() (globals []Global) {
	for _, c := range p.Captures {
		if c.Source == SourceGlobal {
			globals = append(globals, c.Global)
		}
	}
	return globals
}

// Has says whether some capture is one of these.
func (p Program) Has(is func(Capture) bool) bool {
	return slices.ContainsFunc(p.Captures, is)
}

// Signed says that the capture that is summed up is in two's complement:
// a signed integer, or a floating point number, which is truncated.
func (p Program) Signed() bool {
	if p.Value < 0 || p.Value >= len(p.Captures) {
		return false
	}
	t := p.Captures[p.Value].Type
	return t.Signed() || t.Float()
}
