// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// step is one instruction of code that is decoded from its beginning.
type step struct {
	x86asm.Inst
	at     uint64
	length int
	code   []byte
}

// steps decodes a part, one instruction after the other.
func steps(p Part) (all []step, err error) {
	for at := 0; at < len(p.Code); {
		inst, err := decode(p.Code[at:])
		if err != nil || at+inst.Len > len(p.Code) {
			return nil, fmt.Errorf("instruction at %#x is not understood", p.Address+uint64(at))
		}
		all = append(all, step{inst, p.Address + uint64(at), inst.Len, p.Code[at : at+inst.Len]})
		at += inst.Len
	}
	return all, nil
}

// target is where a direct branch or call leads.
func (s step) target() (uint64, bool) {
	to, ok := s.Args[0].(x86asm.Rel)
	return s.at + uint64(s.length) + uint64(int64(to)), ok
}

// refers is the address that an operand like x(%rip) is.
func (s step) refers() (uint64, bool) {
	relative := func(a x86asm.Arg) bool {
		m, ok := a.(x86asm.Mem)
		return ok && m.Base == x86asm.RIP
	}
	if s.PCRel != 4 || !slices.ContainsFunc(s.Args[:], relative) {
		return 0, false
	}
	distance := int32(binary.LittleEndian.Uint32(s.code[s.PCRelOff:]))
	return s.at + uint64(s.length) + uint64(int64(distance)), true
}

// begins finds the instruction at an address, or where it would be.
func begins(all []step, address uint64) (index int, found bool) {
	return slices.BinarySearchFunc(all, address, func(s step, address uint64) int { return cmp.Compare(s.at, address) })
}

// consistent says whether all branches within a part lead to instructions.
func consistent(p Part, all []step) bool {
	return !slices.ContainsFunc(all, func(s step) bool {
		target, ok := s.target()
		if !ok || !p.holds(target) {
			return false
		}
		_, found := begins(all, target)
		return !found
	})
}

// Names are the addresses that the code of a function names: those that it
// computes or has as numbers, and those of the memory that it refers to. The
// error wraps [ErrUnpatchable] where the code is not understood.
func Names(function Part) (computed, memory []uint64, err error) {
	all, err := steps(function)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnpatchable, err)
	}
	for _, s := range all {
		switch to, ok := s.refers(); {
		case ok && s.Op == x86asm.LEA:
			computed = append(computed, to)
		case ok:
			memory = append(memory, to)
		}
		if number, ok := s.Args[1].(x86asm.Imm); ok && s.Op == x86asm.MOV {
			computed = append(computed, uint64(number))
		}
	}
	return computed, memory, nil
}

// LoopsBack finds a branch of a function to its entry, which is watched at an
// address, behind a landing pad as a rule: each turn of that loop would be taken
// for a call. False also where the code is not understood.
func LoopsBack(function Part, entry uint64) (at uint64, ok bool) {
	all, err := steps(function)
	if err != nil {
		return 0, false
	}
	for _, s := range all {
		if target, ok := s.target(); ok && s.Op != x86asm.CALL && target >= function.Address && target <= entry {
			return s.at, true
		}
	}
	return 0, false
}
