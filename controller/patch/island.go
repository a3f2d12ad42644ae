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

// IslandBytes is the size of an island and its alignment: a cache line.
const IslandBytes = 64

// An island, by offset:
//
//	 0  call *hook     (ff 15): returns with everything as it was
//	 6  the first instruction, moved here, and a jump behind it
//	32  number         uint32; the hook finds it by its return address
//	36  first byte of the function, uint8; 3 bytes unused
//	40  patched address, uint64
//	48  hook           uint64, address of DMLib's dm_patch_entry
//	56  magic
//
// It never changes once it is written, since a thread can be in it at any time.
const (
	islandMoved   = 6
	islandNumber  = 32 // ATTUNE_ISLAND_NUMBER
	islandFirst   = 36
	islandAddress = 40
	islandHook    = 48
	islandMagic   = 56
)

var magic = []byte("ATISLAND")

// errTooFar is a reason to try another place.
var errTooFar = errors.New("more than 2 GiB away")

// Island makes the code that is executed in place of the first instruction:
// call the hook, which finds number in it, then go on with the function. It is
// made for one address and refused where that is too far from what the
// instruction refers to.
func (s Site) Island(at uint64, number uint32, hook uint64) ([]byte, error) {
	island := make([]byte, IslandBytes)
	copy(island, []byte{0xff, 0x15})
	binary.LittleEndian.PutUint32(island[2:], islandHook-islandMoved)
	moved, err := s.Relocate(at + islandMoved)
	if err != nil {
		return nil, err
	}
	copy(island[islandMoved:islandNumber], moved)
	binary.LittleEndian.PutUint32(island[islandNumber:], number)
	island[islandFirst] = s.Original[0]
	binary.LittleEndian.PutUint64(island[islandAddress:], s.Address)
	binary.LittleEndian.PutUint64(island[islandHook:], hook)
	copy(island[islandMagic:], magic)
	return island, nil
}

// NumberOf returns the number in an island that was made for the site. It is
// false for anything else.
func (s Site) NumberOf(island []byte) (number uint32, ok bool) {
	if len(island) != IslandBytes || !bytes.Equal(island[islandMagic:], magic) ||
		binary.LittleEndian.Uint64(island[islandAddress:]) != s.Address || island[islandFirst] != s.Original[0] {
		return 0, false
	}
	return binary.LittleEndian.Uint32(island[islandNumber:]), true
}

// Relocate makes code for the address at that does what the first instruction
// does in its place and goes on behind it; at most 20 bytes.
func (s Site) Relocate(at uint64) ([]byte, error) {
	code, err := s.move(at)
	if err != nil || s.inst.Op == x86asm.JMP && s.branches() {
		return code, err
	}
	back, err := Jump(at+uint64(len(code)), s.Continue())
	return append(code, back...), err
}

// move makes the first instruction for another address.
func (s Site) move(at uint64) ([]byte, error) {
	code := s.Original[:s.inst.Len:s.inst.Len]
	switch {
	case s.inst.PCRel == 0:
		return code, nil
	case s.branches() && s.inst.Op == x86asm.JMP:
		return Jump(at, s.target())
	case s.branches(): // 70+cc rel8 and 0f 80+cc rel32
		condition := s.Original[s.inst.PCRelOff-1] & 0x0f
		return relative(at, []byte{0x0f, 0x80 | condition}, s.target())
	}
	code = bytes.Clone(code)
	displacement, err := distance(at+uint64(len(code)), s.target())
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(code[s.inst.PCRelOff:], displacement)
	return code, nil
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
