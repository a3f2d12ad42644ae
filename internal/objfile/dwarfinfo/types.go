// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Kind of a type, typedefs and qualifiers taken off.
type Kind int

// Kinds of types.
const (
	// Other types have no value that could be taken.
	Other Kind = iota
	// Integer also stands for characters, booleans and enumerations.
	Integer
	// Float is IEEE 754 of 4 or 8 bytes; LongDouble is larger.
	Float
	LongDouble
	// Pointer also stands for references, which are pointers in memory.
	Pointer
	// Aggregate is a structure, class or union.
	Aggregate
	// Array of elements.
	Array
)

// Type of a variable, parameter or field.
type Type struct {
	// Name as the source has it.
	Name string
	Kind Kind
	// Size in bytes; 0 if it is not known.
	Size int64
	// Signed integers.
	Signed bool

	dwarf dwarf.Type
	// target of a reference, which debug/dwarf does not follow.
	target  dwarf.Type
	passing passing // of an Aggregate
}

// maxDepth bounds typedefs of typedefs and anonymous members of such.
const maxDepth = 32

// typeOf returns the type that an entry refers to, of void the zero Type.
func (i *Info) typeOf(e *dwarf.Entry) (Type, error) {
	offset, ok := i.attribute(e, dwarf.AttrType).(dwarf.Offset)
	if !ok {
		if i.attribute(e, dwarf.AttrType) != nil {
			return Type{}, fmt.Errorf("%w: types shared with other files (dwz)", ErrUnsupported)
		}
		return Type{Name: "void"}, nil
	}
	if err := i.checkType(offset); err != nil {
		return Type{}, err
	}
	t, err := i.data.Type(offset)
	if err != nil {
		return Type{}, fmt.Errorf("%w: type: %w", objfile.ErrCorrupt, err)
	}
	described := describe(t)
	i.refine(&described, offset)
	return described, nil
}

// refine adds what debug/dwarf leaves out: references, and how C++ passes an
// object.
func (i *Info) refine(t *Type, offset dwarf.Offset) {
	for range maxDepth {
		e := i.at(offset)
		if e == nil {
			return
		}
		switch e.Tag {
		case dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
			t.Kind, t.Size, t.Name = Pointer, 8, "reference"
			if to, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok {
				if target, err := i.data.Type(to); err == nil {
					t.target, t.Name = target, nameOf(target)+" &"
				}
			}
			return
		case dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType:
			t.passing = classes{i}.passing(e, 0)
			return
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType:
		default:
			return
		}
		next, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok {
			return
		}
		offset = next
	}
}

// describe says what a type is.
func describe(t dwarf.Type) Type {
	d := Type{Name: nameOf(t), dwarf: bare(t)}
	if d.dwarf == nil {
		return d
	}
	d.Size = max(d.dwarf.Size(), 0)
	switch d.dwarf.(type) {
	case *dwarf.IntType, *dwarf.CharType:
		d.Kind, d.Signed = Integer, true
	case *dwarf.UintType, *dwarf.UcharType, *dwarf.BoolType:
		d.Kind = Integer
	case *dwarf.EnumType:
		d.Kind, d.Signed = Integer, true
	case *dwarf.FloatType:
		d.Kind = Float
		if d.Size > 8 {
			d.Kind = LongDouble
		}
	case *dwarf.PtrType:
		d.Kind, d.Size = Pointer, 8
	case *dwarf.StructType:
		d.Kind = Aggregate
	case *dwarf.ArrayType:
		d.Kind = Array
	}
	return d
}

// nameOf is the name of a type as people know it. That of debug/dwarf writes the
// parameters of functions and the members of structures without name out, as often as
// they are nested, and without end where they lead back.
func nameOf(t dwarf.Type) string {
	var name strings.Builder
	for range maxDepth {
		switch u := t.(type) {
		case *dwarf.QualType:
			name.WriteString(u.Qual + " ")
			t = u.Type
		case *dwarf.PtrType:
			name.WriteString("*")
			t = u.Type
		case *dwarf.ArrayType:
			fmt.Fprintf(&name, "[%d]", u.Count)
			t = u.Type
		case *dwarf.StructType:
			return name.String() + strings.TrimSpace(u.Kind+" "+u.StructName)
		case *dwarf.EnumType:
			return name.String() + strings.TrimSpace("enum "+u.EnumName)
		case *dwarf.FuncType:
			return name.String() + "func"
		case nil:
			return name.String() + "void"
		default:
			return name.String() + t.String() // its name
		}
	}
	return name.String() + "…"
}

// bare takes typedefs and qualifiers off; nil for void and for circles.
func bare(t dwarf.Type) dwarf.Type {
	for range maxDepth {
		switch u := t.(type) {
		case *dwarf.TypedefType:
			t = u.Type
		case *dwarf.QualType:
			t = u.Type
		case *dwarf.VoidType:
			return nil
		default:
			return t
		}
	}
	return nil
}

// pointee is what a pointer or reference leads to.
func (t Type) pointee() (Type, bool) {
	switch p := t.dwarf.(type) {
	case *dwarf.PtrType:
		to := describe(p.Type)
		return to, to.dwarf != nil
	default:
		if t.target == nil {
			return Type{}, false
		}
		return describe(t.target), true
	}
}

// field finds a member, also of anonymous members, with its offset in bytes.
func (t Type) field(name string) (Type, int64, bool, error) {
	return t.fieldWithin(name, bounded.NewWork("looking for member "+name, maxMembers))
}

func (t Type) fieldWithin(name string, work *bounded.Work) (Type, int64, bool, error) {
	s, ok := t.dwarf.(*dwarf.StructType)
	if !ok {
		return Type{}, 0, false, nil
	}
	for _, f := range s.Field {
		if err := work.Spend(1); err != nil {
			return Type{}, 0, false, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		switch {
		case f.Name == name && f.BitSize != 0:
			return Type{}, 0, false, fmt.Errorf("%w: %s is a bit field", ErrUnsupported, name)
		case f.Name == name:
			return describe(f.Type), f.ByteOffset, true, nil
		case f.Name == "":
			inner, offset, ok, err := describe(f.Type).fieldWithin(name, work)
			if ok || err != nil {
				return inner, f.ByteOffset + offset, ok, err
			}
		}
	}
	return Type{}, 0, false, nil
}

// element is what an array holds.
func (t Type) element() (Type, int64, bool) {
	a, ok := t.dwarf.(*dwarf.ArrayType)
	if !ok {
		return Type{}, 0, false
	}
	return describe(a.Type), a.Count, true
}

// Text says whether the value is text: characters side by side, or the address
// of such.
func (t Type) Text() (text, byAddress bool) {
	to, byAddress := t, false
	switch t.Kind {
	case Pointer:
		pointee, ok := t.pointee()
		if !ok {
			return false, false
		}
		to, byAddress = pointee, true
	case Array:
		element, _, ok := t.element()
		if !ok {
			return false, false
		}
		to = element
	default:
		return false, false
	}
	plain := strings.NewReplacer("const ", "", "volatile ", "").Replace(to.Name)
	return to.Kind == Integer && to.Size == 1 && plain == "char", byAddress
}
