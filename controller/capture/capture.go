// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// compileCapture checks one capture of a point at a place.
func compileCapture(c *attunev1.Capture, place attunev1.Place) (Capture, error) {
	out := Capture{
		Name: c.GetName(), Type: Type(c.GetType()), Limit: int(min(c.GetStringLimit(), MaxString+1)),
		Dereference: slices.Clone(c.GetDereference()),
	}
	out.Type = cmp.Or(out.Type, TypeU64)
	if err := out.source(c); err != nil {
		return out, err
	}
	out.complete()
	err := out.check(place)
	return out, err
}

// source fills in where the value comes from.
func (c *Capture) source(from *attunev1.Capture) (err error) {
	register := c.Type.Float() && len(c.Dereference) == 0
	switch s := from.GetSource().(type) {
	case *attunev1.Capture_Parameter:
		c.Source, c.Index = SourceParameter, int(min(s.Parameter, math.MaxInt32))
		if register {
			c.Source = SourceFloatParameter
		}
	case *attunev1.Capture_Returned:
		c.Source = SourceReturned
		if register {
			c.Source = SourceFloatReturned
		}
	case *attunev1.Capture_Global:
		c.Source, c.Global = SourceGlobal, Global{Object: s.Global.GetObject(), Symbol: s.Global.GetSymbol()}
	case *attunev1.Capture_Constant:
		c.Source = SourceConstant
		c.Value, err = constant(s.Constant, c.typeOfSource())
	case *attunev1.Capture_Context:
		err = c.context(s.Context)
	case *attunev1.Capture_Path:
		err = fmt.Errorf("%s was not looked up in the debug information", s.Path)
	default:
		err = errors.New("no source that is known here")
	}
	return err
}

func (c *Capture) context(context attunev1.CaptureContext) error {
	sources := map[attunev1.CaptureContext]Source{
		attunev1.CaptureContext_CAPTURE_CONTEXT_THREAD:    SourceThread,
		attunev1.CaptureContext_CAPTURE_CONTEXT_CPU:       SourceCPU,
		attunev1.CaptureContext_CAPTURE_CONTEXT_CALL_SITE: SourceCallSite,
		attunev1.CaptureContext_CAPTURE_CONTEXT_STACK:     SourceStack,
	}
	source, ok := sources[context]
	switch {
	case !ok:
		return errors.New("no context that is known here")
	case c.Type.Float():
		return errors.New("thread, CPU and call site are integers")
	case len(c.Dereference) > 0:
		return errors.New("thread, CPU and call site lead to no memory")
	}
	c.Source = source
	return nil
}

// typeOfSource is the type of the value that the steps begin with.
func (c *Capture) typeOfSource() Type {
	if len(c.Dereference) > 0 || c.Type.Text() {
		return TypePointer
	}
	return c.Type
}

// complete fills in what may be left out.
func (c *Capture) complete() {
	inMemory := c.Type == TypeString || c.Source == SourceGlobal
	context := c.Source >= SourceThread
	if inMemory && len(c.Dereference) == 0 && !context {
		c.Dereference = []int32{0}
	}
	if c.Type.Text() && c.Limit == 0 {
		c.Limit = defaultString
	}
}

func (c *Capture) check(place attunev1.Place) error {
	atReturn := place == attunev1.Place_PLACE_EXIT || place == attunev1.Place_PLACE_BOTH
	switch {
	case c.Name == "":
		return errors.New("it has no name")
	case c.Type > TypeSized:
		return errors.New("no type that is known here")
	case c.Source == SourceParameter && c.Index >= IntegerParameters,
		c.Source == SourceFloatParameter && c.Index >= FloatParameters:
		return fmt.Errorf("parameter %d of its class is passed on the stack: the first %d integers and addresses and the first %d floating point numbers can be had",
			c.Index, IntegerParameters, FloatParameters)
	case c.AtReturn() && !atReturn:
		return errors.New("a function has not returned at its entry: take its exit, or both")
	case c.Source == SourceGlobal && c.Global.Symbol == "":
		return errors.New("a global variable needs a symbol")
	case len(c.Dereference) > MaxSteps:
		return fmt.Errorf("%d steps through memory: at most %d", len(c.Dereference), MaxSteps)
	case c.Type == TypeSized && len(c.Dereference) == 0 && c.Source != SourceParameter:
		return errors.New("the length of a string is the next parameter, or lies in memory: a result has none")
	case c.Type == TypeSized && c.Source == SourceParameter && len(c.Dereference) == 0 && c.Index+1 >= IntegerParameters:
		return errors.New("the length of the string, which is the next parameter, is passed on the stack")
	case c.Type.Text() && c.Source >= SourceThread:
		return errors.New("thread, CPU and call site are integers")
	case !c.Type.Text() && c.Limit != 0:
		return errors.New("a limit is for strings")
	case c.Limit > MaxString:
		return fmt.Errorf("a string of more than %d bytes", MaxString)
	}
	return nil
}

// constant is a number in 64 bits as a type has it. What the type cannot hold
// is refused.
func constant(v *attunev1.Value, t Type) (uint64, error) {
	switch k := v.GetKind().(type) {
	case *attunev1.Value_Integer:
		return integer(uint64(k.Integer), k.Integer < 0, t)
	case *attunev1.Value_Unsigned:
		return integer(k.Unsigned, false, t)
	case *attunev1.Value_Truth:
		if k.Truth {
			return integer(1, false, t)
		}
		return integer(0, false, t)
	case *attunev1.Value_Real:
		if t.Float() {
			return math.Float64bits(k.Real), nil
		}
		return 0, fmt.Errorf("%v is no integer", k.Real)
	}
	return 0, errors.New("the constant is no number")
}

// integer takes the two's complement bits of an integer.
func integer(bits uint64, negative bool, t Type) (uint64, error) {
	if t.Float() {
		if negative {
			return math.Float64bits(float64(int64(bits))), nil
		}
		return math.Float64bits(float64(bits)), nil
	}
	least, most := t.bounds()
	if negative && (!t.Signed() || int64(bits) < least) || !negative && bits > most {
		return 0, fmt.Errorf("a constant beyond the %d bits of its type", t.size()*8)
	}
	return bits, nil
}

// bounds of an integer type.
func (t Type) bounds() (least int64, most uint64) {
	bits := t.size() * 8
	if t.Signed() {
		return -1 << (bits - 1), 1<<(bits-1) - 1
	}
	return 0, math.MaxUint64 >> (64 - bits)
}

// size of a number in bytes.
func (t Type) size() int {
	switch t {
	case TypeI8, TypeU8:
		return 1
	case TypeI16, TypeU16:
		return 2
	case TypeI32, TypeU32, TypeF32:
		return 4
	}
	return 8
}
