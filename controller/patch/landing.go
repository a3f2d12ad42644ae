// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/binary"
)

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

// A landing of a wide site has a slot of a window to itself:
//
//	 0  jmp *pointer
//	 8  pointer
//	16  address of the patched code
//	24  magic
const (
	landingPointer = 8
	landingAddress = 16
	landingMagic   = 24
	landingSize    = 32
)

var magicOfLanding = []byte("ATLANDW1")

// OwnLanding makes what stands at the Landing of a wide site, and says where its
// pointer is, which still leads nowhere.
func (s Site) OwnLanding() (code []byte, pointer uint64, err error) {
	pointer = s.Landing + landingPointer
	jump, err := LandingCode(s.Landing, pointer)
	code = make([]byte, landingSize)
	copy(code, jump)
	binary.LittleEndian.PutUint64(code[landingAddress:], s.Address)
	copy(code[landingMagic:], magicOfLanding)
	return code, pointer, err
}

// LandingIn finds the landing of a wide site in memory that begins at an
// address.
func (s Site) LandingIn(start uint64, memory []byte) (landing uint64, ok bool) {
	first := int(-start % SlotBytes)
	for i := first; i+landingSize <= len(memory); i += SlotBytes {
		slot := memory[i:]
		if bytes.Equal(slot[landingMagic:landingSize], magicOfLanding) && binary.LittleEndian.Uint64(slot[landingAddress:]) == s.Address {
			return start + uint64(i), true
		}
	}
	return 0, false
}
