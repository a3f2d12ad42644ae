// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/arch/x86/x86asm"
)

// errTooFar is a reason to try another place.
var errTooFar = errors.New("more than 2 GiB away")

// Relocate makes code for the address at that does what the displaced
// instructions do in their place and goes on behind them.
func (s Site) Relocate(at uint64) ([]byte, error) {
	var moved []byte
	for _, i := range s.displaced {
		code, err := i.move(at + uint64(len(moved)))
		if err != nil {
			return nil, err
		}
		moved = append(moved, code...)
	}
	if last := s.last(); last.Op == x86asm.JMP && last.branches() {
		return moved, nil
	}
	back, err := Jump(at+uint64(len(moved)), s.Continue())
	return append(moved, back...), err
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
