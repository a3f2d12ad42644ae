// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/binary"
)

// assembler makes a stretch of code and the constants behind it. Only the few
// instructions that programs are made of are known; their bytes are written
// out where they are used, with what an assembler would print beside them.
type assembler struct {
	at       uint64 // address of code[0]
	code     []byte
	literals []literal
	err      error // the first one
}

// literal is a constant that code refers to relative to its address.
type literal struct {
	field int // where in code its distance stands, 4 bytes that end the instruction
	data  []byte
}

// register is the number of a general register in instructions.
type register byte

const (
	rax register = 0
	rcx register = 1
	rdx register = 2
	rsi register = 6
	rdi register = 7
	r8  register = 8
	r9  register = 9
)

// integerRegisters hold the integer parameters (System V psABI, 3.2.3).
var integerRegisters = [6]register{rdi, rsi, rdx, rcx, r8, r9}

// realRegisters is how many parameters are passed in xmm0 and so on.
const realRegisters = 8

func (a *assembler) emit(code ...byte) { a.code = append(a.code, code...) }

func (a *assembler) note(err error) {
	if a.err == nil {
		a.err = err
	}
}

// padTo fills up with traps to an offset, unless there is more already.
func (a *assembler) padTo(offset int) {
	for len(a.code) < offset {
		a.emit(0xcc)
	}
}

func (a *assembler) put32(field int, value uint32) {
	binary.LittleEndian.PutUint32(a.code[field:], value)
}

// jump: jmp target
func (a *assembler) jump(target uint64) {
	code, err := Jump(a.address(), target)
	a.note(err)
	a.emit(code...)
}

func (a *assembler) address() uint64 { return a.at + uint64(len(a.code)) }

// loadConstant: movabs $value, %r
func (a *assembler) loadConstant(r register, value uint64) {
	a.emit(0x48|byte(r>>3), 0xb8|byte(r&7))
	a.code = binary.LittleEndian.AppendUint64(a.code, value)
}

// relative emits an instruction that ends with the distance to a constant.
func (a *assembler) relative(data []byte, opcode ...byte) {
	a.emit(opcode...)
	a.literals = append(a.literals, literal{len(a.code), data})
	a.emit(0, 0, 0, 0)
}

func word(value uint64) []byte { return binary.LittleEndian.AppendUint64(nil, value) }

// setReal: movlpd constant(%rip), %xmmN; the rest of the register stays.
func (a *assembler) setReal(number int, bits uint64) {
	a.relative(word(bits), 0x66, 0x0f, 0x12, 0x05|byte(number)<<3)
}

// forward emits a jump, with a 32-bit distance, to a place that is not known
// yet; here tells it later.
func (a *assembler) forward(opcode ...byte) (field int) {
	a.emit(opcode...)
	a.emit(0, 0, 0, 0)
	return len(a.code) - 4
}

func (a *assembler) here(fields ...int) {
	for _, field := range fields {
		a.put32(field, uint32(len(a.code)-field-4))
	}
}

// saveFlags: push %rax; lahf; seto %al; push %rax. POPF would be slow, and
// nothing changes the other flags.
func (a *assembler) saveFlags() { a.emit(0x50, 0x9f, 0x0f, 0x90, 0xc0, 0x50) }

// restoreFlags: pop %rax; add $127, %al; sahf; pop %rax
func (a *assembler) restoreFlags() { a.emit(0x58, 0x04, 0x7f, 0x9e, 0x58) }

// constants puts the constants behind the code, words aligned.
func (a *assembler) constants() {
	for _, l := range a.literals {
		for len(l.data)%8 == 0 && a.address()%8 != 0 {
			a.emit(0xcc)
		}
		a.here(l.field)
		a.emit(l.data...)
	}
}
