// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// argument register i: how to load a number, and the address of something on
// the stack.
var (
	loadNumber = [MaxArguments][]byte{{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba}, {0x48, 0xb9}, {0x49, 0xb8}, {0x49, 0xb9}}
	loadPlace  = [MaxArguments][]byte{
		{0x48, 0x8d, 0xbc, 0x24}, {0x48, 0x8d, 0xb4, 0x24}, {0x48, 0x8d, 0x94, 0x24},
		{0x48, 0x8d, 0x8c, 0x24}, {0x4c, 0x8d, 0x84, 0x24}, {0x4c, 0x8d, 0x8c, 0x24},
	}
)

// stackAlignment is what the calling convention wants at a call.
const stackAlignment = 16

// Thunk is a function without parameters that makes the call and returns its
// result, a double as its bits. It does not depend on its address. Strings are
// copied to the stack, where the callee may write.
//
//	push rbp; mov rbp,rsp; sub rsp,strings
//	copy the strings
//	load xmm0.., rdi..
//	call; leave; ret
func (i Invocation) Thunk() ([]byte, error) {
	texts, places := i.texts()
	room := (len(texts) + stackAlignment - 1) &^ (stackAlignment - 1)
	code := []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5} // a landing pad, and a frame
	code = number32(append(code, 0x48, 0x81, 0xec), room)
	copied := -1
	if len(texts) > 0 {
		code = append(code, 0x48, 0x8d, 0x35) // lea rsi,[rip+texts]
		copied = len(code)
		code = number32(code, 0)
		code = append(code, 0x48, 0x89, 0xe7, 0xb9) // mov rdi,rsp; mov ecx,length
		code = number32(code, len(texts))
		code = append(code, 0xfc, 0xf3, 0xa4) // cld; rep movsb
	}
	code, reals := i.load(code, places)
	code = binary.LittleEndian.AppendUint64(append(code, 0x49, 0xbb), i.Function) // mov r11,function
	code = number32(append(code, 0xb8), reals)                                    // variadic functions want to know
	code = append(code, 0x41, 0xff, 0xd3)                                         // call r11
	if i.Result == attunev1.ResultType_RESULT_TYPE_REAL {
		code = append(code, 0x66, 0x48, 0x0f, 0x7e, 0xc0) // movq rax,xmm0
	}
	code = append(code, 0xc9, 0xc3) // leave; ret
	if copied >= 0 {
		binary.LittleEndian.PutUint32(code[copied:], uint32(len(code)-copied-4))
	}
	code = append(code, texts...)
	if len(code) > maxThunk {
		return nil, fmt.Errorf("%w: the texts are too long: %d bytes altogether", ErrRefused, len(texts))
	}
	return code, nil
}

// load puts the arguments into their registers, and counts the real ones.
func (i Invocation) load(code []byte, places []int) ([]byte, int) {
	integers, reals := 0, 0
	for n, argument := range i.Arguments {
		if real, ok := argument.GetKind().(*attunev1.Value_Real); ok {
			code = binary.LittleEndian.AppendUint64(append(code, 0x48, 0xb8), math.Float64bits(real.Real))
			code = append(code, 0x66, 0x48, 0x0f, 0x6e, byte(0xc0|reals<<3)) // movq xmm,rax
			reals++
			continue
		}
		if places[n] >= 0 {
			code = number32(append(code, loadPlace[integers]...), places[n])
		} else {
			code = binary.LittleEndian.AppendUint64(append(code, loadNumber[integers]...), RegisterOf(argument))
		}
		integers++
	}
	return code, reals
}

func number32(code []byte, n int) []byte { return binary.LittleEndian.AppendUint32(code, uint32(n)) }

// Assembler puts instructions behind one another.
type Assembler []byte

func (a *Assembler) Emit(code ...byte) { *a = append(*a, code...) }

func (a *Assembler) Number64(value uint64, code ...byte) {
	*a = binary.LittleEndian.AppendUint64(append(*a, code...), value)
}

func (a *Assembler) Number32(value uint32, code ...byte) {
	*a = binary.LittleEndian.AppendUint32(append(*a, code...), value)
}

// LoadArgument puts a number into the register of an argument.
func (a *Assembler) LoadArgument(number int, value uint64) { a.Number64(value, loadNumber[number]...) }

// mapCode maps memory that is readable and executable, where nothing is mapped,
// and returns what mmap(2) does.
func mapCode(start, size uint64) []byte {
	var a Assembler
	a.Number64(start, 0x48, 0xbf)                                                        // rdi
	a.Number64(size, 0x48, 0xbe)                                                         // rsi
	a.Number32(unix.PROT_READ|unix.PROT_EXEC, 0xba)                                      // edx
	a.Number32(unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, 0x41, 0xba) // r10d
	a.Emit(0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff)                                     // r8 = -1
	a.Emit(0x45, 0x31, 0xc9)                                                             // r9 = 0
	a.Number32(unix.SYS_MMAP, 0xb8)                                                      // eax
	a.Emit(0x0f, 0x05, 0xc3)                                                             // syscall; ret
	return a
}

// exchangeCode stores a word of 8 bytes where another one is, in one go, and
// returns what was there.
func exchangeCode(w Word, from, to []byte) []byte {
	var a Assembler
	if w.ReadOnly {
		a.protect(w.Address, unix.PROT_READ|unix.PROT_WRITE)
	}
	a.Number64(w.Address, 0x48, 0xbf)                        // rdi
	a.Number64(binary.LittleEndian.Uint64(from), 0x48, 0xb8) // rax
	a.Number64(binary.LittleEndian.Uint64(to), 0x48, 0xba)   // rdx
	a.Emit(0xf0, 0x48, 0x0f, 0xb1, 0x17)                     // lock cmpxchg [rdi],rdx
	a.Emit(0x49, 0x89, 0xc0)                                 // r8 = rax
	if w.ReadOnly {
		a.protect(w.Address, unix.PROT_READ)
	}
	a.Emit(0x4c, 0x89, 0xc0, 0xc3) // rax = r8; ret
	return a
}

// protect calls mprotect(2) for the page of an address.
func (a *Assembler) protect(address uint64, access uint32) {
	a.Number64(address&^(pageBytes-1), 0x48, 0xbf) // rdi
	a.Number32(pageBytes, 0xbe)                    // esi
	a.Number32(access, 0xba)                       // edx
	a.Number32(unix.SYS_MPROTECT, 0xb8)            // eax
	a.Emit(0x0f, 0x05)
}
