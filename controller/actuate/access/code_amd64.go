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
	a := Assembler{0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5} // a landing pad, and a frame
	a.Number32(uint32(room), 0x48, 0x81, 0xec)                     // sub rsp,strings
	copied := 0
	if len(texts) > 0 {
		a.Number32(0, 0x48, 0x8d, 0x35) // lea rsi,[rip+texts]
		copied = len(a)
		a.Emit(0x48, 0x89, 0xe7)             // mov rdi,rsp
		a.Number32(uint32(len(texts)), 0xb9) // mov ecx,length
		a.Emit(0xfc, 0xf3, 0xa4)             // cld; rep movsb
	}
	reals := i.load(&a, places)
	a.Number64(i.Function, 0x49, 0xbb) // mov r11,function
	a.Number32(reals, 0xb8)            // variadic functions want to know
	a.Emit(0x41, 0xff, 0xd3)           // call r11
	if i.Result == attunev1.ResultType_RESULT_TYPE_REAL {
		a.Emit(0x66, 0x48, 0x0f, 0x7e, 0xc0) // movq rax,xmm0
	}
	a.Emit(0xc9, 0xc3) // leave; ret
	if copied > 0 {
		binary.LittleEndian.PutUint32(a[copied-4:], uint32(len(a)-copied))
	}
	a.Emit(texts...)
	if len(a) > maxThunk {
		return nil, fmt.Errorf("%w: the texts are too long: %d bytes altogether", ErrRefused, len(texts))
	}
	return a, nil
}

// load puts the arguments into their registers, and counts the real ones.
func (i Invocation) load(a *Assembler, places []int) (reals uint32) {
	integers := 0
	for n, argument := range i.Arguments {
		if real, ok := argument.GetKind().(*attunev1.Value_Real); ok {
			a.Number64(math.Float64bits(real.Real), 0x48, 0xb8)
			a.Emit(0x66, 0x48, 0x0f, 0x6e, byte(0xc0|reals<<3)) // movq xmm,rax
			reals++
			continue
		}
		if places[n] >= 0 {
			a.Number32(uint32(places[n]), loadPlace[integers]...)
		} else {
			a.LoadArgument(integers, RegisterOf(argument))
		}
		integers++
	}
	return reals
}

// Assembler puts instructions behind one another.
type Assembler []byte

// Emit adds code.
func (a *Assembler) Emit(code ...byte) { *a = append(*a, code...) }

// Number64 adds code, and a number of 8 bytes.
func (a *Assembler) Number64(value uint64, code ...byte) {
	*a = binary.LittleEndian.AppendUint64(append(*a, code...), value)
}

// Number32 adds code, and a number of 4 bytes.
func (a *Assembler) Number32(value uint32, code ...byte) {
	*a = binary.LittleEndian.AppendUint32(append(*a, code...), value)
}

// LoadArgument puts a number into the register of an argument.
func (a *Assembler) LoadArgument(number int, value uint64) { a.Number64(value, loadNumber[number]...) }

// MapCode maps private memory with the given access, where nothing is mapped or, for a
// start of 0, anywhere, and returns what mmap(2) does.
func MapCode(start, size uint64, access uint32) []byte {
	flags := uint32(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS)
	if start != 0 {
		flags |= unix.MAP_FIXED_NOREPLACE
	}
	var a Assembler
	a.LoadArgument(0, start)
	a.LoadArgument(1, size)
	a.Number32(access, 0xba)                         // edx
	a.Number32(flags, 0x41, 0xba)                    // r10d
	a.Emit(0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff) // r8 = -1
	a.Emit(0x45, 0x31, 0xc9)                         // r9 = 0
	a.SystemCall(unix.SYS_MMAP)
	a.Emit(0xc3) // ret
	return a
}

// SystemCall makes one; its arguments have been loaded.
func (a *Assembler) SystemCall(number uint32) {
	a.Number32(number, 0xb8) // eax
	a.Emit(0x0f, 0x05)
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
	a.LoadArgument(0, address&^(pageBytes-1))
	a.LoadArgument(1, pageBytes)
	a.Number32(access, 0xba) // edx
	a.SystemCall(unix.SYS_MPROTECT)
}
