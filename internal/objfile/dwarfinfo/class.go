// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Class says how a parameter is passed.
type Class int

// Classes of parameters, after the System V ABI for x86-64, section 3.2.3.
const (
	// Unknown: the debug information does not say, and neither is it known
	// for the parameters that follow.
	Unknown Class = iota
	// InInteger: in general registers, one or two.
	InInteger
	// InSSE: in the low part of vector registers, one or two.
	InSSE
	// InBoth: the first eight bytes in one kind, the others in the other.
	InBoth
	// InMemory: on the stack.
	InMemory
)

// Names of the registers in the order of use.
var (
	integerRegisters = [...]string{"rdi", "rsi", "rdx", "rcx", "r8", "r9"}
	vectorRegisters  = [...]string{"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7"}
)

const eightbyte = 8

// allocator hands registers and stack out in the order of parameters.
type allocator struct {
	integers, vectors int
	stack             int64
	lost              bool // after a parameter of unknown class
	scalars           bool // what is known are single values: of Go, which spreads others over registers
}

// place says where a parameter is at the function's first instruction.
func (a *allocator) place(p *Parameter) {
	parts := classify(p.Type)
	if a.lost || parts == nil || a.scalars && p.Type.Kind == Aggregate {
		a.lost, p.Class = true, Unknown
		return
	}
	integers, vectors := count(parts, InInteger), count(parts, InSSE)
	fits := a.integers+integers <= len(integerRegisters) && a.vectors+vectors <= len(vectorRegisters)
	if parts[0] == InMemory || !fits {
		p.Class, p.StackOffset = InMemory, a.stack+eightbyte // above the return address
		a.stack += max((p.Type.Size+eightbyte-1)&^(eightbyte-1), eightbyte)
		a.lost = p.Type.Kind == LongDouble || p.Type.Size > 2*eightbyte // may be aligned further
		return
	}
	for _, part := range parts {
		if part == InInteger {
			p.Registers = append(p.Registers, integerRegisters[a.integers])
			a.integers++
		} else {
			p.Registers = append(p.Registers, vectorRegisters[a.vectors])
			a.vectors++
		}
	}
	switch {
	case vectors == 0:
		p.Class = InInteger
	case integers == 0:
		p.Class = InSSE
	default:
		p.Class = InBoth
	}
}

func count(parts []Class, class Class) (n int) {
	for _, part := range parts {
		if part == class {
			n++
		}
	}
	return n
}

// classify gives the class of each eight bytes; nil if it is not known.
func classify(t Type) []Class {
	switch t.Kind {
	case Integer:
		if t.Size > eightbyte { // __int128
			return []Class{InInteger, InInteger}
		}
		return []Class{InInteger}
	case Pointer:
		return []Class{InInteger}
	case Float:
		return []Class{InSSE}
	case LongDouble:
		if t.Size == 16 && t.Name != "_Float128" && t.Name != "__float128" {
			return []Class{InMemory}
		}
		return nil
	case Aggregate:
		return classifyAggregate(t)
	}
	return nil
}

// classifyAggregate: up to 16 bytes go in registers, each half by what is in
// it; a class that cannot be copied plainly goes by address.
func classifyAggregate(t Type) []Class {
	switch {
	case t.passing == byAddress:
		return []Class{InInteger}
	case t.passing == untold:
		return nil
	case t.Size > 2*eightbyte:
		return []Class{InMemory}
	case t.Size == 0:
		return nil
	}
	parts := make([]Class, (t.Size+eightbyte-1)/eightbyte)
	if !merge(parts, t, 0, bounded.NewWork("classifying "+t.Name, maxMerges)) {
		return nil
	}
	for _, part := range parts {
		if part == Unknown {
			return nil
		}
	}
	return parts
}

// maxMerges bounds the members of what has 16 bytes, those that lie over others, too.
const maxMerges = 4096

// merge enters what lies at an offset: an integer makes its eight bytes
// integer whatever else is in them.
func merge(parts []Class, t Type, offset int64, work *bounded.Work) bool {
	if work.Spend(1) != nil || offset < 0 || t.Size <= 0 || offset+t.Size > int64(len(parts))*eightbyte {
		return false
	}
	switch t.Kind {
	case Integer, Pointer:
		for at := offset / eightbyte; at <= (offset+t.Size-1)/eightbyte; at++ {
			parts[at] = InInteger
		}
		return true
	case Float:
		if at := offset / eightbyte; parts[at] == Unknown {
			parts[at] = InSSE
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

func mergeFields(parts []Class, t Type, offset int64, work *bounded.Work) bool {
	s := t.dwarf.(*dwarf.StructType) // that is what an Aggregate is
	for _, f := range s.Field {
		if f.BitSize != 0 || !merge(parts, describe(f.Type), offset+f.ByteOffset, work) {
			return false
		}
	}
	return true
}
