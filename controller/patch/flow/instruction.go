// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// Instruction is one of code that is decoded from its beginning.
type Instruction struct {
	x86asm.Inst
	// At is its address, Code its Len bytes.
	At   uint64
	Code []byte
}

// walk decodes a part, one instruction after the other, which visit must not keep.
func walk(p Part, visit func(i *Instruction)) (err error) {
	var i Instruction
	for at := 0; at < len(p.Code); at += i.Len {
		i.At = p.Address + uint64(at)
		i.Inst, err = decode(p.Code[at:])
		if err != nil || at+i.Len > len(p.Code) {
			return fmt.Errorf("instruction at %#x is not understood", i.At)
		}
		i.Code = p.Code[at : at+i.Len]
		visit(&i)
	}
	return nil
}

// end is the address behind it.
func (i *Instruction) end() uint64 { return i.At + uint64(i.Len) }

// target is where a direct branch or call leads.
func (i *Instruction) target() (uint64, bool) {
	to, ok := i.Args[0].(x86asm.Rel)
	return i.end() + uint64(int64(to)), ok
}

// refers is the address that an operand like x(%rip) is.
func (i *Instruction) refers() (uint64, bool) {
	relative := func(a x86asm.Arg) bool {
		m, ok := a.(x86asm.Mem)
		return ok && m.Base == x86asm.RIP
	}
	if i.PCRel != 4 || !slices.ContainsFunc(i.Args[:], relative) {
		return 0, false
	}
	distance := int32(binary.LittleEndian.Uint32(i.Code[i.PCRelOff:]))
	return i.end() + uint64(int64(distance)), true
}

// Names are the addresses that the code of a function names: those that it
// computes or has as numbers, and those of the memory that it refers to. It
// is an error where the code is not understood.
func Names(function Part) (computed, memory []uint64, err error) {
	err = walk(function, func(i *Instruction) {
		switch to, ok := i.refers(); {
		case ok && i.Op == x86asm.LEA:
			computed = append(computed, to)
		case ok:
			memory = append(memory, to)
		}
		if number, ok := i.Args[1].(x86asm.Imm); ok && i.Op == x86asm.MOV {
			computed = append(computed, uint64(number))
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return computed, memory, nil
}

// LoopsBack finds a branch of a function to its entry, which is watched at an
// address, behind a landing pad as a rule: each turn of that loop would be taken
// for a call. False also where the code is not understood.
func LoopsBack(function Part, entry uint64) (at uint64, ok bool) {
	err := walk(function, func(i *Instruction) {
		if target, leads := i.target(); !ok && leads && i.Op != x86asm.CALL && target >= function.Address && target <= entry {
			at, ok = i.At, true
		}
	})
	if err != nil {
		return 0, false
	}
	return at, ok
}
