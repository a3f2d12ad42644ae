// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// evex begins the instructions of AVX-512, whose operands the decoder does not
// always get right.
const evex = x86asm.Prefix(0x62)

// instruction is one that a patch displaces.
type instruction struct {
	x86asm.Inst
	// at is its address, code its bytes.
	at   uint64
	code []byte
}

// decodeMovable decodes the instruction at an address and refuses what it does
// not know, and what means something else at another address.
func decodeMovable(at uint64, code []byte) (instruction, error) {
	decoded, err := x86asm.Decode(code, 64)
	if err == nil && (decoded.Op == 0 || slices.Contains(decoded.Prefix[:], evex)) {
		err = x86asm.ErrUnrecognized // whatever the decoder says
	}
	if err != nil {
		return instruction{}, fmt.Errorf("%w: instruction % x: %w", ErrUnpatchable, code[:min(len(code), JumpBytes)], err)
	}
	i := instruction{Inst: decoded, at: at, code: bytes.Clone(code[:decoded.Len])}
	if err := i.movable(); err != nil {
		return instruction{}, fmt.Errorf("%w: instruction %s %w", ErrUnpatchable, i.Inst, err)
	}
	return i, nil
}

// end is the address behind it.
func (i instruction) end() uint64 { return i.at + uint64(i.Len) }

// movable refuses instructions that mean something else at another address and
// that relocation does not handle.
func (i instruction) movable() error {
	switch i.Op {
	case x86asm.CALL, x86asm.LCALL:
		return errors.New("is a call: its return address would lie outside the function")
	case x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE, x86asm.JCXZ, x86asm.JECXZ, x86asm.JRCXZ, x86asm.XBEGIN:
		return errors.New("is a branch without a long form")
	case x86asm.INT, x86asm.INTO, x86asm.ICEBP:
		return errors.New("is a trap: a debugger or the kernel has a breakpoint here")
	case x86asm.UD1, x86asm.UD2, x86asm.HLT:
		return errors.New("ends the program at this very address")
	case x86asm.SYSCALL, x86asm.SYSENTER:
		return errors.New("tells the kernel its address")
	case x86asm.LJMP, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
		return errors.New("changes the code segment")
	}
	return i.relocatable()
}

// relocatable refuses what refers to its own address in a way that is not
// understood: Intel and AMD read a jump with an operand-size prefix as
// different lengths.
func (i instruction) relocatable() error {
	for _, a := range i.Args {
		if m, ok := a.(x86asm.Mem); ok && (m.Base == x86asm.EIP || m.Base == x86asm.RIP && i.PCRel != 4) {
			return errors.New("has an operand relative to its address in an unusual form")
		}
	}
	if i.branches() && slices.ContainsFunc(i.Prefix[:], isOperandSize) {
		return errors.New("is a branch with an operand-size prefix")
	}
	if i.PCRel != 0 && i.PCRel != 1 && i.PCRel != 4 {
		return fmt.Errorf("has a displacement of %d bytes", i.PCRel)
	}
	return nil
}

func isOperandSize(p x86asm.Prefix) bool { return p&0xff == x86asm.PrefixDataSize }

// target is what the instruction refers to relative to itself.
func (i instruction) target() uint64 {
	field := i.code[i.PCRelOff:]
	displacement := int64(int8(field[0]))
	if i.PCRel == 4 {
		displacement = int64(int32(binary.LittleEndian.Uint32(field)))
	}
	return i.end() + uint64(displacement)
}

// branches says whether the instruction is a jump to target, conditional
// or not.
func (i instruction) branches() bool {
	if i.PCRel == 0 {
		return false
	}
	_, relative := i.Args[0].(x86asm.Rel)
	return relative
}

// leaves says whether the next instruction is never executed after it.
func (i instruction) leaves() bool { return i.Op == x86asm.JMP || i.Op == x86asm.RET }

// ends says whether something else than the next instruction may follow.
func (i instruction) ends() bool { return i.leaves() || i.branches() }

// move makes the instruction for another address.
func (i instruction) move(at uint64) ([]byte, error) {
	code := i.code[:i.Len:i.Len]
	switch {
	case i.PCRel == 0:
		return code, nil
	case i.branches() && i.Op == x86asm.JMP:
		return Jump(at, i.target())
	case i.branches():
		return relative(at, i.conditional(), i.target())
	}
	code = bytes.Clone(code)
	displacement, err := distance(at+uint64(len(code)), i.target())
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(code[i.PCRelOff:], displacement)
	return code, nil
}

// conditional is the long form of a conditional jump's opcode, which is 70+cc
// with 8 bits of displacement or 0f 80+cc with 32.
func (i instruction) conditional() []byte {
	return []byte{0x0f, 0x80 | i.code[i.PCRelOff-1]&0x0f}
}
