// SPDX-License-Identifier: Apache-2.0

package patch

import (
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

// landingPointer is where the pointer is in the slot that a landing of a wide site has to
// itself.
const landingPointer = 8

// OwnLanding makes what stands at the Landing of a wide site, and says where its
// pointer is, which still leads nowhere.
func (s Site) OwnLanding() (code []byte, pointer uint64, err error) {
	pointer = s.Landing + landingPointer
	code, err = LandingCode(s.Landing, pointer)
	return code, pointer, err
}
