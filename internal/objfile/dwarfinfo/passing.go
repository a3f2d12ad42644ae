// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"slices"
	"strconv"
	"strings"
)

// passing is how objects are passed. Of several that apply the greatest holds.
type passing int

const (
	// plainly: as the members say, in registers or on the stack.
	plainly passing = iota
	// untold: the debug information does not tell.
	untold
	// byAddress: C++ passes objects so that are not trivial to copy or to destroy.
	byAddress
)

// Values of DW_AT_calling_convention (DWARF 5, 3.3.1.1), which GCC does not write.
const (
	passByReference = 4
	passByValue     = 5
)

// classes says how objects of classes are passed.
type classes struct{ *Info }

// passing is how an object of a structure, class or union is passed, after the Itanium
// C++ ABI, 3.1.1: what the compiler says, or else what its members, its base classes
// and its own functions for copying and destroying it say. Structures of C have none.
func (c classes) passing(class *dwarf.Entry, depth int) passing {
	how, _ := class.Val(dwarf.AttrCalling).(int64)
	switch {
	case how == passByReference:
		return byAddress
	case depth == maxDepth || class.Val(dwarf.AttrSignature) != nil || class.Val(dwarf.AttrDeclaration) != nil || isElsewhere(class, dwarf.AttrName):
		return untold
	}
	all := c.passingOfParts(class, depth)
	if how == passByValue && all == byAddress {
		return plainly // [[clang::trivial_abi]]
	}
	return all
}

func (c classes) passingOfParts(class *dwarf.Entry, depth int) (all passing) {
	r := c.data.Reader()
	r.Seek(class.Offset)
	if _, err := c.next(r); err != nil || !class.Children {
		return plainly
	}
	for {
		e, err := c.next(r)
		switch {
		case err != nil || e == nil:
			return untold
		case e.Tag == 0:
			return all
		case e.Tag == dwarf.TagInheritance:
			// debug/dwarf has no members of base classes.
			all = max(all, untold, c.passingOfPart(e, depth))
		case e.Tag == dwarf.TagMember && e.Val(dwarf.AttrExternal) != nil:
			all = max(all, untold) // a static one of DWARF 4, which debug/dwarf takes for a part
		case e.Tag == dwarf.TagMember:
			all = max(all, c.passingOfPart(e, depth))
		case e.Tag == dwarf.TagSubprogram:
			all = max(all, c.passingBy(e, class))
		}
		if err := c.skip(r, e); err != nil {
			return untold
		}
	}
}

// passingOfPart is what a member or base class makes of the object that has it.
func (c classes) passingOfPart(part *dwarf.Entry, depth int) passing {
	if isVirtual(part) {
		return byAddress
	}
	const attrVector dwarf.Attr = 0x2107 // DW_AT_GNU_vector
	e := part
	for range maxDepth {
		e = c.referred(e, dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType)
		switch {
		case e == nil:
			return untold
		case e.Val(attrVector) != nil:
			return untold // in one register, if the processor has such
		}
		if e.Tag != dwarf.TagArrayType {
			break
		}
	}
	switch e.Tag {
	case dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType:
		return c.passing(e, depth+1)
	}
	return plainly
}

// passingBy is what a function of a class makes of it.
func (c classes) passingBy(function, class *dwarf.Entry) passing {
	const inClass = 1 // ~T() = default
	name, _ := function.Val(dwarf.AttrName).(string)
	of, _ := class.Val(dwarf.AttrName).(string)
	of, _, _ = strings.Cut(of, "<")
	defaulted, _ := function.Val(dwarf.AttrDefaulted).(int64)
	switch {
	case isVirtual(function):
		return byAddress
	case isElsewhere(function, dwarf.AttrName):
		return untold
	case defaulted == inClass || function.Val(dwarf.AttrArtificial) != nil: // the members tell
		return plainly
	case strings.HasPrefix(name, "~"):
		return c.passingByOwn(class)
	case name != of || !c.copies(function, class):
		return plainly
	case function.Val(dwarf.AttrDeleted) != nil:
		return untold // another one may be there
	}
	return c.passingByOwn(class)
}

// passingByOwn is what a destructor or copy constructor makes of a class that is not
// marked as defaulted. It may be defaulted all the same where the compiler marks neither
// functions nor classes, as Clang with DWARF 4.
func (c classes) passingByOwn(class *dwarf.Entry) passing {
	if class.Val(dwarf.AttrCalling) != nil || marksDefaulted(c.producer(class.Offset)) {
		return byAddress
	}
	return untold
}

// producer is the compiler that wrote an entry. What dwz has put into a unit of its own
// names none: that of another unit is taken.
func (c classes) producer(offset dwarf.Offset) string {
	behind, found := slices.BinarySearch(c.units, offset)
	if !found {
		behind = max(behind-1, 0) // its unit begins before it
	}
	for n := range c.units {
		if unit := c.at(c.units[(behind+n)%len(c.units)]); unit != nil {
			if producer, ok := unit.Val(dwarf.AttrProducer).(string); ok {
				return producer
			}
		}
	}
	return ""
}

// marksDefaulted says whether a compiler writes DW_AT_defaulted: GCC does from 7 on, with
// DWARF 4 as well.
func marksDefaulted(producer string) bool {
	const first = 7
	words := strings.Fields(producer) // GNU C++17 12.2.0 -O2
	if len(words) < 3 || words[0] != "GNU" || slices.Contains(words, "-gstrict-dwarf") {
		return false
	}
	major, _, _ := strings.Cut(words[2], ".")
	version, err := strconv.Atoi(major)
	return err == nil && version >= first
}

// isElsewhere says whether an entry has a text that cannot be read, as in the file that dwz
// makes of what several files share.
func isElsewhere(e *dwarf.Entry, attribute dwarf.Attr) bool {
	value := e.Val(attribute)
	_, readable := value.(string)
	return value != nil && !readable
}

func isVirtual(e *dwarf.Entry) bool {
	virtual, _ := e.Val(dwarf.AttrVirtuality).(int64)
	return virtual != 0
}

// copies says whether a constructor's first parameter is a reference to an object of its
// class.
func (c classes) copies(constructor, class *dwarf.Entry) bool {
	r := c.data.Reader()
	r.Seek(constructor.Offset)
	if _, err := c.next(r); err != nil || !constructor.Children {
		return false
	}
	for {
		e, err := c.next(r)
		switch {
		case err != nil || e == nil || e.Tag == 0:
			return false
		case e.Tag == dwarf.TagFormalParameter && e.Val(dwarf.AttrArtificial) == nil: // behind "this"
			to := c.referred(e, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType, dwarf.TagConstType, dwarf.TagVolatileType)
			direct := c.referred(e)
			return to != nil && to.Offset == class.Offset && direct.Offset != class.Offset
		}
		if c.skip(r, e) != nil {
			return false
		}
	}
}

// referred is the type of an entry, behind those with certain tags; nil if there is none.
func (i *Info) referred(e *dwarf.Entry, behind ...dwarf.Tag) *dwarf.Entry {
	for range maxDepth {
		offset, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok {
			return nil
		}
		if e = i.at(offset); e == nil || !slices.Contains(behind, e.Tag) {
			return e
		}
	}
	return nil
}
