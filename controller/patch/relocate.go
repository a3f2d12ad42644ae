// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/arch/x86/x86asm"
)

// errTooFar is a reason to try another place.
var errTooFar = errors.New("more than 2 GiB away")

// Relocate makes code for the address at that does what the displaced
// instruction does in its place and goes on behind it; at most 20 bytes.
func (s Site) Relocate(at uint64) ([]byte, error) {
	code, err := s.move(at)
	if err != nil || s.inst.Op == x86asm.JMP && s.branches() {
		return code, err
	}
	back, err := Jump(at+uint64(len(code)), s.Continue())
	return append(code, back...), err
}

// move makes the displaced instruction for another address.
func (s Site) move(at uint64) ([]byte, error) {
	code := s.Original[:s.inst.Len:s.inst.Len]
	switch {
	case s.inst.PCRel == 0:
		return code, nil
	case s.branches() && s.inst.Op == x86asm.JMP:
		return Jump(at, s.target())
	case s.branches():
		return relative(at, s.conditional(), s.target())
	}
	code = bytes.Clone(code)
	displacement, err := distance(at+uint64(len(code)), s.target())
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(code[s.inst.PCRelOff:], displacement)
	return code, nil
}

// conditional is the long form of a conditional jump's opcode, which is 70+cc
// with 8 bits of displacement or 0f 80+cc with 32.
func (s Site) conditional() []byte {
	return []byte{0x0f, 0x80 | s.Original[s.inst.PCRelOff-1]&0x0f}
}

// Jump makes the JumpBytes bytes of a jump.
func Jump(at, target uint64) ([]byte, error) { return relative(at, []byte{JumpOpcode}, target) }

// JumpTarget is where the jump in code leads that lies at an address. It is
// false where there is no jump.
func JumpTarget(at uint64, code []byte) (target uint64, ok bool) {
	if len(code) < JumpBytes || code[0] != JumpOpcode {
		return 0, false
	}
	displacement := int64(int32(binary.LittleEndian.Uint32(code[1:])))
	return at + JumpBytes + uint64(displacement), true
}

// LandingBytes is the length of what stands at a landing: a jump through a
// pointer.
const LandingBytes = 6

// LandingCode makes a landing at an address that goes on where the pointer, a
// word, leads.
func LandingCode(at, pointer uint64) ([]byte, error) {
	return relative(at, []byte{0xff, 0x25}, pointer)
}

// PointerOf is where the pointer of a landing lies. It is false for anything
// else.
func PointerOf(at uint64, code []byte) (pointer uint64, ok bool) {
	if len(code) < LandingBytes || code[0] != 0xff || code[1] != 0x25 {
		return 0, false
	}
	displacement := int64(int32(binary.LittleEndian.Uint32(code[2:])))
	return at + LandingBytes + uint64(displacement), true
}

func relative(at uint64, opcode []byte, target uint64) ([]byte, error) {
	displacement, err := distance(at+uint64(len(opcode))+4, target)
	return binary.LittleEndian.AppendUint32(opcode, displacement), err
}

func distance(from, to uint64) (uint32, error) {
	d := int64(to - from)
	if d < math.MinInt32 || d > math.MaxInt32 {
		return 0, fmt.Errorf("%w: %#x from %#x: %w", ErrUnpatchable, to, from, errTooFar)
	}
	return uint32(int32(d)), nil
}
