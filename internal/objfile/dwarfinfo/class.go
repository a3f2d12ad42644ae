// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"slices"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Class says how a parameter is passed.
type Class int

// Classes of parameters.
const (
	// Unknown: the debug information does not say, and neither is it known
	// for the parameters that follow.
	Unknown Class = iota
	// InRegisters: in one or two.
	InRegisters
	// InMemory: on the stack.
	InMemory
)

// part is how eight bytes are passed, after the System V ABI for x86-64, section 3.2.3.
type part int

const (
	unknown part = iota
	integer      // in a general register
	sse          // in the low part of a vector register
	memory       // on the stack, with all the others
)

// Registers that parameters are passed in.
const integerRegisters, vectorRegisters = 6, 8

const eightbyte = 8

// allocator hands registers out in the order of parameters.
type allocator struct {
	integers, vectors int
	lost              bool // after a parameter of unknown class
	language          int64
}

// place says where a parameter is at the function's first instruction.
func (a *allocator) place(p *Parameter) {
	parts := classify(p.Type)
	if a.lost || parts == nil || a.language == languageGo && p.Type.Kind == Aggregate { // which Go spreads over registers
		a.lost, p.Class = true, Unknown
		return
	}
	integers, vectors := count(parts, integer), count(parts, sse)
	fits := a.integers+integers <= integerRegisters && a.vectors+vectors <= vectorRegisters
	if parts[0] == memory || !fits {
		p.Class = InMemory
		// Others than C may pass the address of a large value, in a register, and
		// -mlong-double-128 has a long double in one.
		a.lost = p.Type.Kind == LongDouble || p.Type.Size > 2*eightbyte && !slices.Contains(languagesOfC, a.language)
		return
	}
	p.Class = InRegisters
	for range integers {
		p.General = append(p.General, a.integers)
		a.integers++
	}
	for range vectors {
		p.Vector = append(p.Vector, a.vectors)
		a.vectors++
	}
}

func count(parts []part, wanted part) (n int) {
	for _, one := range parts {
		if one == wanted {
			n++
		}
	}
	return n
}

// classify says how each eight bytes are passed; nil if it is not known.
func classify(t Type) []part {
	switch t.Kind {
	case Integer:
		if t.Size > eightbyte { // __int128
			return []part{integer, integer}
		}
		return []part{integer}
	case Pointer:
		return []part{integer}
	case Float:
		return []part{sse}
	case LongDouble:
		if t.Size == 16 && t.dwarf.Common().Name == "long double" { // _Float128 is in a vector register
			return []part{memory}
		}
		return nil
	case Aggregate:
		return classifyAggregate(t)
	}
	return nil
}

// classifyAggregate: up to 16 bytes go in registers, each half by what is in
// it; a class that cannot be copied plainly goes by address.
func classifyAggregate(t Type) []part {
	switch {
	case t.passing == byAddress:
		return []part{integer}
	case t.passing == untold:
		return nil
	case t.Size > 2*eightbyte:
		return []part{memory}
	case t.Size == 0:
		return nil
	}
	parts := make([]part, (t.Size+eightbyte-1)/eightbyte)
	if !merge(parts, t, 0, bounded.NewWork("classifying "+t.Name, maxMerges)) {
		return nil
	}
	if slices.Contains(parts, unknown) {
		return nil
	}
	return parts
}

// maxMerges bounds the members of what has 16 bytes, those that lie over others, too.
const maxMerges = 4096

// merge enters what lies at an offset: an integer makes its eight bytes
// integer whatever else is in them.
func merge(parts []part, t Type, offset int64, work *bounded.Work) bool {
	if work.Spend(1) != nil || offset < 0 || t.Size <= 0 || offset+t.Size > int64(len(parts))*eightbyte {
		return false
	}
	if single := t.Kind == Integer || t.Kind == Pointer || t.Kind == Float; single && offset%t.Size != 0 {
		return false // packed: then all of it is on the stack
	}
	switch t.Kind {
	case Integer, Pointer:
		for at := offset / eightbyte; at <= (offset+t.Size-1)/eightbyte; at++ {
			parts[at] = integer
		}
		return true
	case Float:
		if at := offset / eightbyte; parts[at] == unknown {
			parts[at] = sse
		}
		return true
	case Aggregate:
		return mergeFields(parts, t, offset, work)
	case Array:
		element, length, _ := t.element()
		for n := range min(length, int64(len(parts))*eightbyte) {
			if !merge(parts, element, offset+n*element.Size, work) {
				return false
			}
		}
		return length > 0
	}
	return false
}

func mergeFields(parts []part, t Type, offset int64, work *bounded.Work) bool {
	s := t.dwarf.(*dwarf.StructType) // that is what an Aggregate is
	for _, f := range s.Field {
		if f.BitSize != 0 || !merge(parts, describe(f.Type), offset+f.ByteOffset, work) {
			return false
		}
	}
	return true
}
