// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// layout is what stands where in a function.
type layout struct {
	all []placed
	// whole says that no branch leads into an instruction, as it does in code that
	// holds data.
	whole bool
	err   error // why it is not known
}

// placed is an instruction, as far as [Surroundings] needs it.
type placed struct {
	at       uint64
	to       uint64 // where it leads or what it refers to, by its kind
	kind     kind
	length   uint8
	relative uint8 // where its distance of four bytes is; 0: it has none
	vector   bool
}

// kind is what an instruction does with an address relative to its own.
type kind uint8

const (
	plain    kind = iota // it has none
	branch               // it is a jump or a call to it
	computes             // it computes it
	refers               // it reads or writes there
)

// layoutOf lists the instructions of a function.
func layoutOf(part Part) (l layout) {
	const usual = 4 // bytes of an instruction
	l.all = make([]placed, 0, len(part.Code)/usual)
	l.err = walk(part, func(i *Instruction) {
		p := placed{at: i.At, length: uint8(i.Len), vector: vectorLength(i.Code) > 0}
		if i.PCRel == 4 {
			p.relative = uint8(i.PCRelOff)
		}
		if to, ok := i.target(); ok {
			p.to, p.kind = to, branch
		} else if to, ok := i.refers(); ok {
			if p.to, p.kind = to, refers; i.Op == x86asm.LEA {
				p.kind = computes
			}
		}
		l.all = append(l.all, p)
	})
	l.whole = l.err == nil && !slices.ContainsFunc(l.all, func(p placed) bool {
		_, found := l.at(p.to)
		return p.kind == branch && part.Holds(p.to) && !found
	})
	return l
}

// at finds the instruction at an address, or where it would be.
func (l layout) at(address uint64) (index int, found bool) {
	return slices.BinarySearchFunc(l.all, address, func(p placed, at uint64) int { return cmp.Compare(p.at, at) })
}

// accidental says that four bytes of code are not the distance that they look
// like: they lie across two instructions, or are another operand. That is known
// only of a function that is decoded from its beginning, and in which no branch
// leads into an instruction.
func (l layout) accidental(at uint64) bool {
	if !l.whole {
		return false
	}
	i, found := l.at(at)
	if !found {
		i--
	}
	switch p := l.all[i]; {
	case at+4 > p.at+uint64(p.length):
		return true
	case p.vector:
		return false // its operands are not decoded
	default:
		return p.relative == 0 || at != p.at+uint64(p.relative)
	}
}
