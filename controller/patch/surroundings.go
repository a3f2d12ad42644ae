// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
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

// nothingLeads refuses a stretch if anything may lead to an address between
// from and to, neither of them included:
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
func (s Surroundings) nothingLeads(from, to uint64) error {
	what, at, err := s.leads(from, to)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnpatchable, err)
	}
	if what != "" {
		return fmt.Errorf("%w: %s at %#x leads into the bytes of a whole jump at %#x", ErrUnpatchable, what, at, from)
	}
	return nil
}

// leads finds what leads to an address between from and to, and where that is;
// "" if nothing does.
func (s Surroundings) leads(from, to uint64) (what string, at uint64, err error) {
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
		if at, ok := tableTo(base, s.at(base), inside); ok {
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
		steps, err := steps(part)
		if err != nil {
			return "", 0, nil, err
		}
		for _, step := range steps {
			if target, ok := step.target(); ok && inside(target) {
				return "a branch", step.at, nil, nil
			}
			base, ok := step.refers()
			if ok && inside(base) {
				return "an instruction", step.at, nil, nil
			}
			if ok && i < len(s.Function) && step.Op == x86asm.LEA {
				bases = append(bases, base)
			}
		}
	}
	return "", 0, bases, nil
}

// codeLeads finds four bytes of code, in no part that is decoded, that are the
// distance from their end to an address between from and to.
func (s Surroundings) codeLeads(from, to uint64, decoded []Part) (at uint64, ok bool) {
	for at := range s.aiming(from, to) {
		if !anyTouches(decoded, at, at+4) && !s.accidental(at) {
			return at, true
		}
	}
	return 0, false
}

// accidental says that four bytes of code are not the distance that they look
// like: they lie across two instructions, or are another operand. That is known
// only of a function that is decoded from its beginning, and in which no branch
// leads into an instruction.
func (s Surroundings) accidental(at uint64) bool {
	part, ok := s.Holding(at)
	if !ok {
		return false
	}
	all := s.Aims.layout(part)
	if all == nil {
		return false
	}
	i, found := slices.BinarySearchFunc(all, at, func(p placed, at uint64) int { return cmp.Compare(p.at, at) })
	if !found {
		i--
	}
	switch p := all[i]; {
	case at+4 > p.at+uint64(p.length):
		return true
	case p.vector:
		return false // its operands are not decoded
	default:
		return p.relative == 0 || at != p.at+uint64(p.relative)
	}
}

// placed is an instruction of a function, as far as [Surroundings.accidental] needs it.
type placed struct {
	at       uint64
	length   uint8
	relative uint8 // where its distance of four bytes is; 0: it has none
	vector   bool
}

// layoutOf lists the instructions of a function; nil if they are not understood, or a
// branch leads into one.
func layoutOf(part Part) (all []placed) {
	decoded, err := steps(part)
	if err != nil || !consistent(part, decoded) {
		return nil
	}
	for _, s := range decoded {
		p := placed{at: s.at, length: uint8(s.length), vector: vectorLength(s.code) > 0}
		if s.PCRel == 4 {
			p.relative = uint8(s.PCRelOff)
		}
		all = append(all, p)
	}
	return all
}

// anyTouches says whether a part has something between two addresses.
func anyTouches(parts []Part, start, end uint64) bool {
	return slices.ContainsFunc(parts, func(p Part) bool {
		return p.Address < end && start < p.Address+uint64(len(p.Code))
	})
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

// at is what is loaded from an address on.
func (s Surroundings) at(address uint64) []byte {
	for _, p := range s.Loaded {
		if p.holds(address) {
			return p.Code[address-p.Address:]
		}
	}
	return nil
}

// LedTo says whether code outside of parts, or a pointer, leads to an address:
// as a call, a jump or an address that is taken.
func (s Surroundings) LedTo(address uint64, parts []Part) bool {
	for at := range s.aiming(address-1, address+1) {
		if !slices.ContainsFunc(parts, func(p Part) bool { return p.holds(at) }) {
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

// endingAt are the instructions of the function up to the one at an address.
func (s Surroundings) endingAt(address uint64) ([]step, error) {
	for _, part := range s.Function {
		if !part.holds(address) {
			continue
		}
		all, err := steps(part)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnpatchable, err)
		}
		if i, ok := begins(all, address); ok {
			return all[:i+1], nil
		}
	}
	return nil, fmt.Errorf("%w: no instruction of the function begins at %#x", ErrUnpatchable, address)
}
