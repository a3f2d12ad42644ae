// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
)

// ErrPath says that a path is not written as one.
var ErrPath = errors.New("invalid path: write NAME.FIELD, NAME->FIELD or NAME[INDEX]")

// Access says how to get at a value. For a variable: start at Symbol.Value
// (plus the load bias) + Offsets[0]; for a parameter: start with its value, to
// which Offsets[0] is added, if there are Offsets. While Offsets are left, load
// a pointer there and add the next one. What the last one gives is the address
// of the value.
type Access struct {
	// Symbol of a variable.
	Symbol objfile.Symbol
	// Parameter, if the path starts with one; nil for variables.
	Parameter *Parameter
	// Offsets in bytes; none if the value is that of the parameter itself.
	Offsets []int64
	// Type of the value.
	Type Type
	// ThreadLocal: Symbol.Value is an offset in each thread's storage of the
	// object, not an address.
	ThreadLocal bool
}

// maxSteps bounds a path.
const maxSteps = 32

// Variable resolves a path that starts with a global or static variable, such
// as global_sendwork.ntuples. Its name is what [objfile.File.Lookup] takes, so
// it may be ambiguous. [ErrPath], [ErrNotFound], [ErrUnsupported], or what
// Lookup returns.
func (i *Info) Variable(path string) (a Access, err error) {
	i.begin()
	defer func() { err = i.done(err) }()
	defer guard(&err)
	name, steps, err := split(path)
	if err != nil {
		return a, err
	}
	found, err := i.file.Lookup(name, objfile.LookupOptions{Suggest: true})
	if err != nil {
		return a, err
	}
	symbol := found[0]
	a = Access{Symbol: symbol, ThreadLocal: symbol.Type == elf.STT_TLS, Offsets: []int64{0}}
	if !symbol.Is(objfile.Variable) && !a.ThreadLocal || len(found) > 1 {
		return a, fmt.Errorf("%w: %s is no variable", ErrNotFound, name)
	}
	if a.Type, err = i.variableType(symbol); err != nil {
		return a, err
	}
	err = a.follow(steps)
	return a, err
}

// Path resolves a path that starts with a parameter, such as
// request.owner->name[2].
func (f Function) Path(path string) (a Access, err error) {
	name, steps, err := split(path)
	if err != nil {
		return a, err
	}
	p, err := f.Parameter(name)
	if err != nil {
		return a, err
	}
	if len(steps) > 0 && p.Type.Kind != Pointer {
		return a, fmt.Errorf("%w: a field of %s, which is passed by value", ErrUnsupported, name)
	}
	a = Access{Parameter: &p, Type: p.Type}
	err = a.follow(steps)
	return a, err
}

// TypeOf is the type of a variable. [ErrNotFound], or [ErrUnsupported].
func (i *Info) TypeOf(variable objfile.Symbol) (t Type, err error) {
	i.begin()
	defer func() { err = i.done(err) }()
	defer guard(&err)
	return i.variableType(variable)
}

// variableType finds the entry of a variable by its names and its address.
func (i *Info) variableType(variable objfile.Symbol) (t Type, err error) {
	plain := variable.Display()
	if at := strings.LastIndex(plain, "::"); at >= 0 {
		plain = plain[at+2:]
	}
	var entry *dwarf.Entry
	err = i.walk(i.data.Reader(), func(_, e *dwarf.Entry) bool {
		if e.Tag == dwarf.TagVariable && i.isAt(e, variable) && i.named(e, plain, variable.Name) {
			entry = e
		}
		return entry == nil
	})
	switch {
	case err != nil:
		return t, err
	case entry == nil:
		return t, fmt.Errorf("%w: variable %s in %s", ErrNotFound, variable.Display(), i.file.Name())
	}
	return i.typeOf(entry)
}

func (i *Info) named(e *dwarf.Entry, plain, linker string) bool {
	name, _ := i.attribute(e, dwarf.AttrName).(string)
	linkage, _ := i.attribute(e, dwarf.AttrLinkageName).(string)
	return name == plain || linkage == linker
}

// isAt says whether a definition is that of a symbol. Locations by an index
// (DWARF 5's addrx) and thread-local ones are not compared.
func (i *Info) isAt(e *dwarf.Entry, symbol objfile.Symbol) bool {
	const opAddress, addressBytes = 0x03, 8
	location, ok := e.Val(dwarf.AttrLocation).([]byte)
	if !ok {
		return false // a declaration
	}
	if len(location) == 1+addressBytes && location[0] == opAddress {
		return binary.LittleEndian.Uint64(location[1:]) == symbol.Value
	}
	return len(location) > 0
}

var (
	pathStart = regexp.MustCompile(`^[^.\[\-]+`)
	pathStep  = regexp.MustCompile(`^(?:\.|->)([\pL_][\pL\pN_]*)|^\[(\d{1,9})\]`)
)

// split takes a path apart: "." and "->" are the same, since the types say
// which one is meant.
func split(path string) (name string, steps []string, err error) {
	name = pathStart.FindString(path)
	rest := path[len(name):]
	for rest != "" && len(steps) < maxSteps {
		m := pathStep.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		steps = append(steps, m[1]+m[2])
		rest = rest[len(m[0]):]
	}
	if name == "" || rest != "" {
		return "", nil, fmt.Errorf("%w: %.80q", ErrPath, path)
	}
	return name, steps, nil
}

// follow goes on from what is there already.
func (a *Access) follow(steps []string) error {
	for _, step := range steps {
		_, pointer := a.Type.dwarf.(*dwarf.PtrType) // no reference, which stands for one
		if a.Type.Kind == Pointer {
			to, ok := a.Type.pointee()
			if !ok {
				return fmt.Errorf("%w: what %s points to", ErrNotFound, a.Type.Name)
			}
			a.Type, a.Offsets = to, append(a.Offsets, 0)
		}
		offset, err := a.step(step, pointer)
		if err != nil {
			return err
		}
		a.Offsets[len(a.Offsets)-1] += offset
	}
	return nil
}

// step goes to a field or an element of what is at hand. Where a pointer was followed
// just now, that is the first of several that lie side by side.
func (a *Access) step(step string, pointed bool) (offset int64, err error) {
	index, err := strconv.ParseInt(step, 10, 64)
	if err != nil {
		field, offset, ok, err := a.Type.field(step)
		if err == nil && !ok {
			err = fmt.Errorf("%w: field %s of %s", ErrNotFound, step, a.Type.Name)
		}
		a.Type = field
		return offset, err
	}
	if pointed && a.Type.Size > 0 {
		return index * a.Type.Size, nil
	}
	element, length, ok := a.Type.element()
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: elements of %s, which is no array", ErrNotFound, a.Type.Name)
	case length > 0 && index >= length:
		return 0, fmt.Errorf("%w: element %d of %s", ErrNotFound, index, a.Type.Name)
	}
	a.Type = element
	return index * element.Size, nil
}

// TypeOfVariable is the type of a variable of a mapped object; false where no debug
// information tells.
func TypeOfVariable(image objfile.Image, variable objfile.Symbol) (Type, bool) {
	file, err := image.Open()
	if err != nil {
		return Type{}, false
	}
	defer file.Close()
	info, err := Open(file)
	if err != nil {
		return Type{}, false
	}
	t, err := info.TypeOf(variable)
	return t, err == nil && t.Kind != Other
}
