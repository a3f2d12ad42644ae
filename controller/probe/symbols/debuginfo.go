// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// errNames: a capture by name that cannot be taken.
var errNames = errors.New("cannot be taken by name")

// nameReader reads one file's debug information, once, when it is needed.
type nameReader struct {
	file  *objfile.File
	image objfile.Image
	info  *dwarfinfo.Info
	err   error
}

// read finds a parameter of a function, or else a variable.
func (r *nameReader) read(f objfile.Symbol, path string) (*attunev1.Capture, error) {
	if r.info == nil && r.err == nil {
		r.info, r.err = dwarfinfo.Open(r.file)
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w; without it take parameters by position, arg0", r.err)
	}
	function, err := r.info.Function(f)
	if err != nil {
		return nil, err
	}
	access, err := function.Path(path)
	if errors.Is(err, dwarfinfo.ErrNotFound) && !hasParameter(function, path) {
		variable, noVariable := r.info.Variable(path)
		if noVariable != nil {
			return nil, fmt.Errorf("%w; nor is there a variable: %w", err, noVariable)
		}
		access, err = variable, nil
	}
	if err != nil {
		return nil, err
	}
	return r.capture(access)
}

// hasParameter says whether a path begins with a parameter: then it is not meant
// as a variable of that name.
func hasParameter(f dwarfinfo.Function, path string) bool {
	first := path[:len(path)-len(strings.TrimLeftFunc(path, func(c rune) bool { return !strings.ContainsRune(".-[", c) }))]
	_, err := f.Parameter(first)
	return err == nil
}

// capture says what an access is in the protocol's words.
func (r *nameReader) capture(a dwarfinfo.Access) (*attunev1.Capture, error) {
	c := &attunev1.Capture{}
	for _, offset := range a.Offsets {
		if offset < math.MinInt32 || offset > math.MaxInt32 {
			return nil, fmt.Errorf("%w: it lies %d bytes away", errNames, offset)
		}
		c.Dereference = append(c.Dereference, int32(offset))
	}
	var err error
	switch {
	case a.Parameter != nil:
		c.Source, err = parameter(*a.Parameter)
	case a.ThreadLocal:
		err = fmt.Errorf("%w: each thread has one of its own", errNames)
	default:
		c.Source = &attunev1.Capture_Global{Global: &attunev1.GlobalVariable{Symbol: a.Symbol.Name}}
	}
	if err != nil {
		return nil, err
	}
	if text, byAddress := a.Type.Text(); text {
		c.Type = attunev1.CaptureType_CAPTURE_TYPE_STRING
		if byAddress {
			c.Dereference = append(c.Dereference, 0)
		}
		return c, nil
	}
	c.Type, err = typeOf(a.Type)
	return c, err
}

// parameter says where a parameter is by the calling convention: debug
// information on its location is about the code after the entry.
func parameter(p dwarfinfo.Parameter) (*attunev1.Capture_Parameter, error) {
	switch p.Class {
	case dwarfinfo.InMemory:
		return nil, fmt.Errorf("%w: it is passed on the stack", errNames)
	case dwarfinfo.Unknown:
		return nil, fmt.Errorf("%w: the debug information does not say how it is passed", errNames)
	}
	numbers := slices.Concat(p.General, p.Vector)
	if len(numbers) != 1 || p.Type.Kind == dwarfinfo.Aggregate {
		return nil, fmt.Errorf("%w: it is a structure passed by value, in registers", errNames)
	}
	return &attunev1.Capture_Parameter{Parameter: uint32(numbers[0])}, nil
}

// typeOf is a type of the source as captures know it.
func typeOf(t dwarfinfo.Type) (attunev1.CaptureType, error) {
	signed := map[int64]attunev1.CaptureType{
		1: attunev1.CaptureType_CAPTURE_TYPE_I8, 2: attunev1.CaptureType_CAPTURE_TYPE_I16,
		4: attunev1.CaptureType_CAPTURE_TYPE_I32, 8: attunev1.CaptureType_CAPTURE_TYPE_I64,
	}
	unsigned := map[int64]attunev1.CaptureType{
		1: attunev1.CaptureType_CAPTURE_TYPE_U8, 2: attunev1.CaptureType_CAPTURE_TYPE_U16,
		4: attunev1.CaptureType_CAPTURE_TYPE_U32, 8: attunev1.CaptureType_CAPTURE_TYPE_U64,
	}
	real := map[int64]attunev1.CaptureType{
		4: attunev1.CaptureType_CAPTURE_TYPE_F32, 8: attunev1.CaptureType_CAPTURE_TYPE_F64,
	}
	var found attunev1.CaptureType
	switch {
	case t.Kind == dwarfinfo.Integer && t.Signed:
		found = signed[t.Size]
	case t.Kind == dwarfinfo.Integer:
		found = unsigned[t.Size]
	case t.Kind == dwarfinfo.Float:
		found = real[t.Size]
	case t.Kind == dwarfinfo.Pointer:
		found = attunev1.CaptureType_CAPTURE_TYPE_POINTER
	case t.Kind == dwarfinfo.Aggregate:
		return 0, fmt.Errorf("%w: it is a whole structure (%s): name a member", errNames, t.Name)
	}
	if found == 0 {
		return 0, fmt.Errorf("%w: its type is %s, of %d bytes", errNames, t.Name, t.Size)
	}
	return found, nil
}
