// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// removeKind has a function return at once.
func removeKind() actuate.Kind {
	return actuate.Kind{
		Route: actuate.Route{
			Action:  "remove",
			What:    "remove call",
			Command: "attune tune remove",
			Ways:    []access.Way{access.WayEntry},
			Remark:  "All calls, or those from one function; a structure or long double cannot be returned. Of an indirect function what it has chosen is changed, here and below, unless another one may have chosen it as well.",
			Undo:    "the function's first byte (or bytes)",
		},
		Plan: planRemove,
	}
}

// planRemove prepares that a function returns at once.
func planRemove(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	remove := r.Change.GetAction().GetRemove()
	process := r.Process
	found, err := access.LookupChanged(process, remove.GetFunction())
	if err != nil {
		return nil, err
	}
	names := namesOf(found, remove.GetFunction().GetObject(), remove.GetFunction().GetSymbol())
	var values []*attunev1.Value
	if remove.GetReturns() != nil {
		values = append(values, remove.GetReturns())
	}
	if err := r.Allowed("remove", values, names...); err != nil {
		return nil, err
	}
	result, err := registerValue(remove.GetReturns(), 8)
	if err != nil {
		return nil, err
	}
	say := actuate.Told{Where: functionPlace(found), Old: "called", New: "not called"}
	if remove.GetReturns() != nil {
		say.New = "returns " + attunev1.ValueLiteral(remove.GetReturns())
	}
	action := patch.Remove{Result: result}
	if caller := remove.GetCalledFrom(); caller != nil {
		if action.Callers, err = codeOf(process, caller); err != nil {
			return nil, err
		}
		say.Where += " called from " + caller.GetSymbol()
	}
	return planEntry(r, found, patch.Step{Remove: &action}, say)
}

// codeOf is where the code of a function lies, its cold part included.
func codeOf(process access.Process, f *attunev1.Function) ([]patch.Range, error) {
	found, err := access.LookupCalled(process, f)
	if err != nil {
		return nil, err
	}
	if found.Symbol.Size == 0 {
		return nil, fmt.Errorf("%w: nothing tells where %s ends", access.ErrRefused, f.GetSymbol())
	}
	file, err := found.Image.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	outline, err := file.Outline()
	if err != nil {
		return nil, err
	}
	var ranges []patch.Range
	for _, s := range append([]objfile.Symbol{found.Symbol}, outline.Cold(found.Symbol)...) {
		start := found.Image.Address(s.Value)
		ranges = append(ranges, patch.Range{Start: start, End: start + s.Size})
	}
	return ranges, nil
}

// paramKind gives a function another value for a parameter.
func paramKind() actuate.Kind {
	return actuate.Kind{
		Route: actuate.Route{
			Action:  "param",
			What:    "change parameter",
			Command: "attune tune param",
			Ways:    []access.Way{access.WayEntry},
			Remark:  "In one of the first six registers of its kind, as the calling convention counts them: integers and addresses, or doubles and floats. The old value that may be required is compared in the size of the parameter where debug information has it, else in 8 bytes. Refused where the function loops back to its first instruction.",
			Undo:    "the function's first byte (or bytes)",
		},
		Plan: planParameter,
	}
}

// planParameter prepares that a function gets another value for a parameter.
func planParameter(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	c := r.Change.GetAction().GetParameter()
	found, err := access.LookupChanged(r.Process, c.GetFunction())
	if err != nil {
		return nil, err
	}
	names := namesOf(found, c.GetFunction().GetObject(), c.GetFunction().GetSymbol())
	if err := r.Allowed("param", []*attunev1.Value{c.GetValue()}, names...); err != nil {
		return nil, err
	}
	if c.GetValue() == nil || c.GetParameter() >= settable {
		return nil, fmt.Errorf("%w: %s: registers 0 to %d can get a value", access.ErrRefused, found.Symbol.Name, settable-1)
	}
	_, real := c.GetValue().GetKind().(*attunev1.Value_Real)
	width, err := widthOf(found, int(c.GetParameter()), real)
	if err != nil {
		return nil, err
	}
	action := patch.Parameter{Number: int(c.GetParameter())}
	if action.Value, err = registerValue(c.GetValue(), width); err != nil {
		return nil, err
	}
	say := actuate.Told{
		Where: fmt.Sprintf("parameter %d of %s", c.GetParameter(), functionPlace(found)),
		Old:   "as passed", New: attunev1.ValueLiteral(c.GetValue()),
	}
	if old := c.GetRequiredOld(); old != nil {
		required, err := registerValue(old, width)
		if err != nil || required.Class != action.Value.Class {
			return nil, fmt.Errorf("%w: %s: the old value is of another kind than the new one", access.ErrRefused, found.Symbol.Name)
		}
		action.Old, action.Width = &required.Bits, compared(width, old)
		say.Old = attunev1.ValueLiteral(old)
	}
	return planEntry(r, found, patch.Step{Parameter: &action}, say)
}

// settable is how many registers of a kind, those of the first parameters, get a value.
const settable = 6

// widthOf is the size of the parameter, bytes, that is in a register, by the register's number
// among those of its kind; 0 where nothing tells. Debug information knows what does not exist.
func widthOf(found objfile.Resolved, number int, real bool) (int, error) {
	f, known := signature(found)
	if !known {
		return 0, nil
	}
	const addressBytes = 8
	var there []string
	for _, p := range f.Parameters {
		if p.Class == dwarfinfo.Unknown { // nor is it known for those that follow
			return 0, nil
		}
		registers := p.General
		if real {
			registers = p.Vector
		}
		for _, register := range registers {
			if register < settable {
				there = append(there, fmt.Sprintf("%d (%s)", register, p.Name))
			}
		}
		switch {
		case !slices.Contains(registers, number):
		case len(p.General)+len(p.Vector) > 1: // a structure, of which the register has some members
			return 0, nil
		case p.ByAddress():
			return addressBytes, nil
		default:
			return int(p.Type.Size), nil
		}
	}
	kind := "an integer or address"
	if real {
		kind = "a floating-point number"
	}
	if len(there) == 0 {
		return 0, fmt.Errorf("%w: no register has %s that is a parameter of %s", access.ErrRefused, kind, found.Symbol.Name)
	}
	return 0, fmt.Errorf("%w: no register %d has %s that is a parameter of %s; there are %s", access.ErrRefused, number, kind, found.Symbol.Name, strings.Join(there, ", "))
}

// compared is how many bytes of a parameter are compared. The upper half of a
// register that holds an int is undefined; where the type is not known, a
// negative number is taken for an int.
func compared(width int, old *attunev1.Value) int {
	if width == 1 || width == 2 || width == 4 || width == 8 {
		return width
	}
	if n, ok := access.Whole(old); ok && n < 0 && n >= math.MinInt32 {
		return 4
	}
	return 8
}

// insertKind has a function call another one.
func insertKind() actuate.Kind {
	return actuate.Kind{
		Route: actuate.Route{
			Action:  "insert",
			What:    "insert call",
			Command: "attune tune insert",
			Ways:    []access.Way{access.WayEntry},
			Remark:  "At the entry, or at the exits where all of them can be patched. Refused at the entry where the function loops back to it. The thread may hold any lock: what is called must not need one.",
			Undo:    "the function's first byte (or bytes), and its exits",
		},
		Plan: planInsert,
	}
}

// planInsert prepares that a function calls another one.
func planInsert(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	c := r.Change.GetAction().GetInsert()
	found, err := access.LookupChanged(r.Process, c.GetFunction())
	if err != nil {
		return nil, err
	}
	callee, err := access.LookupCalled(r.Process, c.GetCall())
	if err != nil {
		return nil, err
	}
	names := append(namesOf(found, c.GetFunction().GetObject(), c.GetFunction().GetSymbol()),
		namesOf(callee, c.GetCall().GetObject(), c.GetCall().GetSymbol())...)
	var values []*attunev1.Value
	action := patch.Call{Target: callee.Address, AtExit: c.GetPlace() == attunev1.Place_PLACE_EXIT}
	for _, argument := range c.GetArguments() {
		passed, err := argumentOf(argument)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", access.ErrRefused, callee.Symbol.Name, err)
		}
		if value := argument.GetConstant(); value != nil {
			values = append(values, value)
		}
		action.Arguments = append(action.Arguments, passed)
	}
	if err := r.Allowed("insert", values, names...); err != nil {
		return nil, err
	}
	where := "entry"
	if action.AtExit {
		where = "exit"
	}
	return planEntry(r, found, patch.Step{Call: &action},
		actuate.Told{Where: where + " of " + functionPlace(found), Old: "no call", New: "calls " + functionPlace(callee)})
}

func argumentOf(argument *attunev1.Argument) (patch.Argument, error) {
	switch k := argument.GetKind().(type) {
	case *attunev1.Argument_Parameter:
		return patch.Argument{Source: patch.FromParameter, Number: int(k.Parameter)}, nil
	case *attunev1.Argument_Result:
		return patch.Argument{Source: patch.FromResult}, nil
	case *attunev1.Argument_Constant:
		if text, ok := k.Constant.GetKind().(*attunev1.Value_Text); ok {
			return patch.Argument{Source: patch.Text, Text: text.Text}, nil
		}
		value, err := registerValue(k.Constant, 8)
		return patch.Argument{Source: patch.Constant, Class: value.Class, Bits: value.Bits}, err
	}
	return patch.Argument{}, errors.New("an argument is a value, a parameter or the result")
}

// registerValue is a value as a register holds it; none for nil. Of 4 bytes, a
// real number is a float.
func registerValue(value *attunev1.Value, size int) (patch.Value, error) {
	switch v := value.GetKind().(type) {
	case nil:
		return patch.Value{Class: patch.None}, nil
	case *attunev1.Value_Real:
		if size == 4 {
			return patch.Value{Class: patch.Real, Bits: uint64(math.Float32bits(float32(v.Real)))}, nil
		}
		return patch.Value{Class: patch.Real, Bits: math.Float64bits(v.Real)}, nil
	case *attunev1.Value_Text:
		return patch.Value{}, fmt.Errorf("%w: a text is no value of a register", access.ErrRefused)
	}
	return patch.Value{Class: patch.Integer, Bits: access.RegisterOf(value)}, nil
}
