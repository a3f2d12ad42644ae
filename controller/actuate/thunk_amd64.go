// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"encoding/binary"
	"fmt"
	"math"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// argument register i: how to load a number, and the address of something on
// the stack.
var (
	loadNumber = [maxArguments][]byte{{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba}, {0x48, 0xb9}, {0x49, 0xb8}, {0x49, 0xb9}}
	loadPlace  = [maxArguments][]byte{
		{0x48, 0x8d, 0xbc, 0x24}, {0x48, 0x8d, 0xb4, 0x24}, {0x48, 0x8d, 0x94, 0x24},
		{0x48, 0x8d, 0x8c, 0x24}, {0x4c, 0x8d, 0x84, 0x24}, {0x4c, 0x8d, 0x8c, 0x24},
	}
)

// stackAlignment is what the calling convention wants at a call.
const stackAlignment = 16

// thunk is a function without parameters that makes the call and returns its
// result, a double as its bits. It does not depend on its address. Strings are
// copied to the stack, where the callee may write.
//
//	push rbp; mov rbp,rsp; sub rsp,strings
//	copy the strings
//	load xmm0.., rdi..
//	call; leave; ret
func (i invocation) thunk() ([]byte, error) {
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
	code = binary.LittleEndian.AppendUint64(append(code, 0x49, 0xbb), i.function) // mov r11,function
	code = number32(append(code, 0xb8), reals)                                    // variadic functions want to know
	code = append(code, 0x41, 0xff, 0xd3)                                         // call r11
	if i.result == attunev1.ResultType_RESULT_TYPE_REAL {
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
func (i invocation) load(code []byte, places []int) ([]byte, int) {
	integers, reals := 0, 0
	for n, argument := range i.arguments {
		if real, ok := argument.GetKind().(*attunev1.Value_Real); ok {
			code = binary.LittleEndian.AppendUint64(append(code, 0x48, 0xb8), math.Float64bits(real.Real))
			code = append(code, 0x66, 0x48, 0x0f, 0x6e, byte(0xc0|reals<<3)) // movq xmm,rax
			reals++
			continue
		}
		if places[n] >= 0 {
			code = number32(append(code, loadPlace[integers]...), places[n])
		} else {
			code = binary.LittleEndian.AppendUint64(append(code, loadNumber[integers]...), word(argument))
		}
		integers++
	}
	return code, reals
}

func number32(code []byte, n int) []byte { return binary.LittleEndian.AppendUint32(code, uint32(n)) }
