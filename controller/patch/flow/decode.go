// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"

	"golang.org/x/arch/x86/x86asm"
)

// landingPad is endbr64, where an indirect call must arrive under control-flow
// enforcement.
var landingPad = []byte{0xf3, 0x0f, 0x1e, 0xfa}

// LandingPad is the length of the landing pad that code begins with; 0 if it has
// none.
func LandingPad(code []byte) int {
	if bytes.HasPrefix(code, landingPad) {
		return len(landingPad)
	}
	return 0
}

// decode decodes one instruction. Of vector instructions with a VEX or EVEX
// prefix and of endbr64, which x86asm does not know, only the length is right:
// none of them is a branch.
func decode(code []byte) (x86asm.Inst, error) {
	if n := max(vectorLength(code), LandingPad(code)); n > 0 {
		return x86asm.Inst{Len: n, Op: x86asm.NOP}, nil
	}
	inst, err := x86asm.Decode(code, 64)
	if err == nil && inst.Op == 0 {
		err = x86asm.ErrUnrecognized
	}
	return inst, err
}

// vectorLength is the length of an instruction with a VEX or EVEX prefix; 0 if
// it has none (Intel SDM vol. 2, 2.3 and 2.7).
func vectorLength(code []byte) int {
	const escape0F, escape0F3A = 1, 3
	at := 0
	for at < len(code) && (code[at] == 0x64 || code[at] == 0x65 || code[at] == 0x67 || code[at] == 0x26 || code[at] == 0x2e || code[at] == 0x36 || code[at] == 0x3e) {
		at++
	}
	if at+6 > len(code) {
		code = append(code[:len(code):len(code)], make([]byte, 6)...) // reads on in vain
	}
	var opcode, table int
	switch code[at] {
	case 0xc5:
		opcode, table = at+2, escape0F
	case 0xc4:
		opcode, table = at+3, int(code[at+1]&0x1f)
	case 0x62:
		opcode, table = at+4, int(code[at+1]&0x07)
	default:
		return 0
	}
	if table == escape0F && code[opcode] == 0x77 && code[at] != 0x62 { // vzeroupper, vzeroall
		return opcode + 1
	}
	n := opcode + 1 + addressLength(code[opcode+1:])
	switch {
	case table == escape0F3A, table == escape0F && hasByte[code[opcode]]:
		n++
	}
	return n
}

// hasByte lists the opcodes of the table 0F that an immediate byte follows.
var hasByte = map[byte]bool{0x70: true, 0x71: true, 0x72: true, 0x73: true, 0xc2: true, 0xc4: true, 0xc5: true, 0xc6: true}

// addressLength is the length of a ModRM byte with what belongs to it.
func addressLength(code []byte) int {
	if len(code) < 2 {
		return 1
	}
	mode, rm := code[0]>>6, code[0]&7
	n := 1
	if mode == 3 {
		return n
	}
	if rm == 4 {
		n++
		if mode == 0 && code[1]&7 == 5 {
			n += 4
		}
	}
	switch {
	case mode == 1:
		n++
	case mode == 2, mode == 0 && rm == 5:
		n += 4
	}
	return n
}
