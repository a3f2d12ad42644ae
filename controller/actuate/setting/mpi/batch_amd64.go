// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"encoding/binary"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
)

// batchCall is one call of several: a function that returns an int, 0 for success.
type batchCall struct {
	name      string // for people
	function  uint64
	arguments []uint64
	mayFail   bool // the next one is made nonetheless
}

// maxBatch is how many calls of ten arguments fit into the code of one batch.
const maxBatch = inject.MaxCode / 144

// batchCode makes calls one after the other, up to the first that does not
// return 0. It returns that result, with the number of the call from 1 on in the
// upper half; 0 if there is none. It does not depend on its address.
//
//	push rbp; mov rbp,rsp
//	for each: push the arguments from the seventh on; load the others; call;
//	          mov rsp,rbp; mov ecx,number; test eax,eax; jnz end
//	xor ecx,ecx; xor eax,eax
//	end: shl rcx,32; mov eax,eax; or rax,rcx; leave; ret
func batchCode(calls []batchCall) []byte {
	a := access.Assembler{0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5}
	var jumps []int
	for i, c := range calls {
		passIntegers(&a, c.arguments)
		a.Number64(c.function, 0x49, 0xbb) // mov r11,function
		a.Emit(0x31, 0xc0)                 // xor eax,eax
		a.Emit(0x41, 0xff, 0xd3)           // call r11
		a.Emit(0x48, 0x89, 0xec)           // mov rsp,rbp
		if c.mayFail {
			continue
		}
		a.Number32(uint32(i+1), 0xb9) // mov ecx,number
		a.Emit(0x85, 0xc0)            // test eax,eax
		a.Number32(0, 0x0f, 0x85)     // jnz end
		jumps = append(jumps, len(a))
	}
	a.Emit(0x31, 0xc9, 0x31, 0xc0) // xor ecx,ecx; xor eax,eax
	for _, behind := range jumps {
		binary.LittleEndian.PutUint32(a[behind-4:], uint32(len(a)-behind))
	}
	a.Emit(0x48, 0xc1, 0xe1, 0x20, 0x89, 0xc0, 0x48, 0x09, 0xc8, 0xc9, 0xc3)
	return a
}

// passIntegers passes arguments: six in registers, the others on the stack, which is
// aligned before and behind them.
func passIntegers(a *access.Assembler, arguments []uint64) {
	onStack := arguments[min(len(arguments), access.MaxArguments):]
	if len(onStack)%2 != 0 {
		a.Emit(0x48, 0x83, 0xec, 0x08) // sub rsp,8
	}
	for i := len(onStack) - 1; i >= 0; i-- {
		a.Number64(onStack[i], 0x48, 0xb8) // mov rax,argument
		a.Emit(0x50)                       // push rax
	}
	for i, argument := range arguments[:len(arguments)-len(onStack)] {
		a.LoadArgument(i, argument)
	}
}
