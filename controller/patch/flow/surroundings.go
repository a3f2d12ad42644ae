// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// ShortReach is how far the shortest jumps lead, bytes.
const ShortReach = 128

// Surroundings are all the places of an object from which something may lead
// into a stretch of a function's code. Addresses are those of the file.
type Surroundings struct {
	// Function is the function, with its seldom executed parts.
	Function []Part
	// Near are the other functions within ShortReach of it.
	Near []Part
	// Loaded is everything that the loader maps, and Aims knows what of it looks like a
	// way to code.
	Loaded []Part
	Aims   *Aims
	// Begins says whether a function begins at an address.
	Begins func(address uint64) bool
	// Holding finds the function, or the part of one, that an address is in.
	Holding func(address uint64) (part Part, ok bool)
}

// maxTable is how many entries of a table of jumps are looked at: more than any
// switch statement has.
const maxTable = 4096

// Leads finds what may lead to an address between from and to, neither of them
// included, and where that is; "" if nothing does:
//
//   - a branch of the function, as it is decoded, or what it refers to otherwise;
//   - the same of a neighbour that has two bytes like a short jump to there;
//   - any four bytes of all other code that are the distance from their end, behind
//     a byte that an instruction can have there: long branches, calls, addresses
//     that it computes; unless they are no operand of the instructions there, if it
//     is known where they begin;
//   - any eight bytes that are the address: relocations, tables of pointers and
//     of labels;
//   - an entry of a table of distances from an address that the function
//     computes.
func (s Surroundings) Leads(from, to uint64) (what string, at uint64, err error) {
	for address := from + 1; address < to; address++ {
		if s.Begins(address) {
			return "a symbol", address, nil
		}
		if !anyHolds(s.Aims.distances.text, address) {
			return "", 0, fmt.Errorf("there is no code at %#x", address)
		}
	}
	inside := func(address uint64) bool { return address > from && address < to }
	decoded := slices.Concat(s.Function, slices.DeleteFunc(slices.Clone(s.Near), func(p Part) bool { return !shortLeads(p, from, to) }))
	what, at, bases, err := s.decodedLeads(decoded, inside)
	if err != nil || what != "" {
		return what, at, err
	}
	if at, ok := s.codeLeads(from, to, decoded); ok {
		return "code", at, nil
	}
	if pointers := s.Aims.pointers.between(from, to); len(pointers) > 0 {
		return "a pointer in the file", pointers[0], nil
	}
	for _, base := range bases {
		if at, ok := tableTo(base, s.CodeAt(base), inside); ok {
			return "a table of jumps", at, nil
		}
	}
	return "", 0, nil
}

// decodedLeads finds an instruction that leads or refers to an address inside,
// in parts of which the first are the function's; bases are the addresses that
// the function computes.
func (s Surroundings) decodedLeads(parts []Part, inside func(uint64) bool) (what string, at uint64, bases []uint64, err error) {
	for i, part := range parts {
		l := s.Aims.layout(part)
		if l.err != nil {
			return "", 0, nil, l.err
		}
		for _, one := range l.all {
			switch {
			case one.kind == plain:
			case inside(one.to) && one.kind == branch:
				return "a branch", one.at, nil, nil
			case inside(one.to):
				return "an instruction", one.at, nil, nil
			case one.kind == computes && i < len(s.Function):
				bases = append(bases, one.to)
			}
		}
	}
	return "", 0, bases, nil
}

// shortLeads says whether two bytes of a part look like a short jump (jcc, jmp, loop,
// jrcxz) to an address between two.
func shortLeads(p Part, from, to uint64) bool {
	for i := 1; i < len(p.Code); i++ {
		target := p.Address + uint64(i) + 1 + uint64(int64(int8(p.Code[i])))
		if b := p.Code[i-1]; target-from-1 < to-from-1 && (b&0xf0 == 0x70 || b&0xfc == 0xe0 || b == 0xeb) {
			return true
		}
	}
	return false
}

// codeLeads finds four bytes of code, in no part that is decoded, that are the
// distance from their end to an address between from and to.
func (s Surroundings) codeLeads(from, to uint64, decoded []Part) (at uint64, ok bool) {
	for _, at := range s.Aims.distances.between(from, to) {
		if anyTouches(decoded, at, at+4) {
			continue
		}
		if part, ok := s.Holding(at); !ok || !s.Aims.layout(part).accidental(at) {
			return at, true
		}
	}
	return 0, false
}

// CodeAt is what is loaded from an address on.
func (s Surroundings) CodeAt(address uint64) []byte { return CodeAt(s.Loaded, address) }

// tableTo finds an entry of a table of 32-bit distances from its own beginning.
func tableTo(base uint64, table []byte, inside func(uint64) bool) (at uint64, ok bool) {
	for i := 0; i+4 <= len(table) && i < 4*maxTable; i += 4 {
		if inside(base + uint64(int64(int32(binary.LittleEndian.Uint32(table[i:]))))) {
			return base + uint64(i), true
		}
	}
	return 0, false
}

// EndingAt are the instructions of the function up to the one at an address.
func (s Surroundings) EndingAt(address uint64) ([]Instruction, error) {
	for _, part := range s.Function {
		if !part.Holds(address) {
			continue
		}
		var all []Instruction
		found := false
		err := walk(part, func(i *Instruction) {
			if i.At <= address {
				all, found = append(all, *i), i.At == address
			}
		})
		if err != nil {
			return nil, err
		}
		if found {
			return all, nil
		}
	}
	return nil, fmt.Errorf("no instruction of the function begins at %#x", address)
}
