// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"
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
	// Loaded is everything that the loader maps, Text what of it is code.
	Loaded, Text []Part
	// Aims makes looking at both quick; nil: they are looked at each time.
	Aims *Aims
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
//   - a branch of the function or of a neighbour, as they are decoded, or what
//     they refer to otherwise;
//   - any four bytes of all other code that are the distance from their end: long
//     branches, calls, addresses that it computes; unless they are no operand
//     of the instructions there, if it is known where they begin;
//   - any eight bytes that are the address: relocations, tables of pointers and
//     of labels;
//   - an entry of a table of distances from an address that the function
//     computes.
func (s Surroundings) Leads(from, to uint64) (what string, at uint64, err error) {
	for address := from + 1; address < to; address++ {
		if s.Begins(address) {
			return "a symbol", address, nil
		}
	}
	inside := func(address uint64) bool { return address > from && address < to }
	decoded := slices.Concat(s.Function, s.Near)
	what, at, bases, err := s.decodedLeads(decoded, inside)
	if err != nil || what != "" {
		return what, at, err
	}
	if at, ok := s.codeLeads(from, to, decoded); ok {
		return "code", at, nil
	}
	if at, ok := s.pointerLeads(from, to); ok {
		return "a pointer in the file", at, nil
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
		all, err := instructions(part)
		if err != nil {
			return "", 0, nil, err
		}
		for _, one := range all {
			if target, ok := one.target(); ok && inside(target) {
				return "a branch", one.At, nil, nil
			}
			base, ok := one.refers()
			if ok && inside(base) {
				return "an instruction", one.At, nil, nil
			}
			if ok && i < len(s.Function) && one.Op == x86asm.LEA {
				bases = append(bases, base)
			}
		}
	}
	return "", 0, bases, nil
}

// codeLeads finds four bytes of code, in no part that is decoded, that are the
// distance from their end to an address between from and to.
func (s Surroundings) codeLeads(from, to uint64, decoded []Part) (at uint64, ok bool) {
	for at := range s.Aims.aiming(s.Text, from, to) {
		if anyTouches(decoded, at, at+4) {
			continue
		}
		if part, ok := s.Holding(at); !ok || !accidental(s.Aims.layout(part), at) {
			return at, true
		}
	}
	return 0, false
}

// pointerLeads finds eight bytes, on any boundary of four, that are such an
// address.
func (s Surroundings) pointerLeads(from, to uint64) (at uint64, ok bool) {
	if !s.Aims.pointed(from, to) {
		return 0, false
	}
	for _, p := range s.Loaded {
		for i := 0; i+8 <= len(p.Code); i += 4 {
			if binary.LittleEndian.Uint64(p.Code[i:])-from-1 < to-from-1 {
				return p.Address + uint64(i), true
			}
		}
	}
	return 0, false
}

// CodeAt is what is loaded from an address on.
func (s Surroundings) CodeAt(address uint64) []byte {
	for _, p := range s.Loaded {
		if p.Holds(address) {
			return p.Code[address-p.Address:]
		}
	}
	return nil
}

// LedTo says whether code outside of parts, or a pointer, leads to an address:
// as a call, a jump or an address that is taken.
func (s Surroundings) LedTo(address uint64, parts []Part) bool {
	for at := range s.Aims.aiming(s.Text, address-1, address+1) {
		if !anyHolds(parts, at) {
			return true
		}
	}
	_, pointed := s.pointerLeads(address-1, address+1)
	return pointed
}

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
		all, err := instructions(part)
		if err != nil {
			return nil, err
		}
		if i, ok := begins(all, address); ok {
			return all[:i+1], nil
		}
	}
	return nil, fmt.Errorf("no instruction of the function begins at %#x", address)
}
