// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
)

// streamAssembler writes code that works on a FILE.
type streamAssembler struct{ access.Assembler }

// Addressing of a field of a FILE whose address is in rbx.
func (a *streamAssembler) field(offset uint32, code ...byte) { a.Number32(offset, code...) }

// call calls a function by its address.
func (a *streamAssembler) call(function uint64) {
	a.Number64(function, 0x48, 0xb8) // movabs rax
	a.Emit(0xff, 0xd0)               // call rax
}

// Jumps that lead forward.
var (
	jump         = []byte{0xe9}
	jumpNotEqual = []byte{0x0f, 0x85}
)

// forward is a jump whose target comes later: its last four bytes are set by
// land.
func (a *streamAssembler) forward(code []byte) (at int) {
	a.Number32(0, code...)
	return len(a.Assembler)
}

func (a *streamAssembler) land(jumps ...int) {
	for _, at := range jumps {
		distance := uint32(len(a.Assembler) - at)
		for i := range 4 {
			a.Assembler[at-4+i] = byte(distance >> (8 * i))
		}
	}
}

// unlessExpected leaves streamOther in r13, and jumps if the stream has another
// buffer than expected.
func (a *streamAssembler) unlessExpected(c streamCall) (other int) {
	a.Number32(streamOther, 0x49, 0xc7, 0xc5) // r13
	a.Number64(c.expected, 0x48, 0xb8)        // rax
	a.field(fileBufferBase, 0x48, 0x39, 0x83) // cmp [rbx+base],rax
	return a.forward(jumpNotEqual)
}

// streamCode does something with a stream whose lock it holds, unless somebody
// has it, this thread included, or its buffer is another one than expected. It
// returns what work left in r13, or one of the codes. Before it takes the lock it
// looks whether there is a stream at all: one that was closed is somebody's memory.
func streamCode(c streamCall, work func(a *streamAssembler)) []byte {
	var a streamAssembler
	a.Emit(0xf3, 0x0f, 0x1e, 0xfa, 0x53, 0x41, 0x54, 0x41, 0x55) // endbr64; push rbx, r12, r13
	a.Number64(c.stream, 0x48, 0xbb)                             // rbx
	a.field(fileFlags2, 0x44, 0x8b, 0xa3)                        // r12d = flags2
	gone := a.unlessExpected(c)
	a.Emit(0x48, 0x89, 0xdf) // rdi = rbx
	a.call(c.tryLock)
	a.Number32(streamBusy, 0x49, 0xc7, 0xc5) // r13
	a.Emit(0x85, 0xc0)                       // test eax,eax
	locked := a.forward(jumpNotEqual)
	a.field(fileLock, 0x48, 0x8b, 0x83) // rax = lock
	a.Emit(0x83, 0x78, lockDepth, 0x01) // cmp dword [rax+4],1
	recursive := a.forward(jumpNotEqual)
	other := a.unlessExpected(c)
	work(&a)
	a.land(recursive, other)
	a.Emit(0x48, 0x89, 0xdf) // rdi = rbx
	a.call(c.unlock)
	// Locking by hand makes the stream take its lock for good; that it need not
	// in a program of one thread.
	a.Number32(flagNeedLock, 0x41, 0xf7, 0xc4) // test r12d
	needed := a.forward(jumpNotEqual)
	a.field(fileFlags2, 0x81, 0xa3)
	a.Emit(0x7f, 0xff, 0xff, 0xff) // and dword [rbx+flags2],~0x80
	a.land(locked, needed, gone)
	a.Emit(0x4c, 0x89, 0xe8, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0xc3) // r13 is returned
	return a.Assembler
}

// setFlags replaces bits of the stream's flags.
func (a *streamAssembler) setFlags(mask, bits uint32) {
	a.field(fileFlags, 0x81, 0xa3) // and dword [rbx+flags]
	a.Number32(^mask)
	a.field(fileFlags, 0x81, 0x8b) // or dword [rbx+flags]
	a.Number32(bits & mask)
}

// flushCode has a stream write what it holds.
func flushCode(c streamCall) []byte {
	return streamCode(c, func(a *streamAssembler) {
		a.Emit(0x48, 0x89, 0xdf)
		a.call(c.function)
		a.Emit(0x4c, 0x63, 0xe8) // movsxd r13,eax
	})
}

// switchCode gives a stream another buffer, which setvbuf(3) does after it has
// written what the old one holds. The old one is not freed. If writing fails
// the stream has the flags that it had.
func switchCode(c streamCall, from, to buffering) []byte {
	const shape = flagUserBuffer | flagUnbuffered | flagLineBuffer
	return streamCode(c, func(a *streamAssembler) {
		a.setFlags(flagUserBuffer, flagUserBuffer)
		a.Emit(0x48, 0x89, 0xdf)              // rdi = rbx
		a.Number64(to.argument(), 0x48, 0xbe) // rsi
		a.Number32(uint32(to.Mode), 0xba)     // edx
		a.Number64(to.Size, 0x48, 0xb9)       // rcx
		a.call(c.function)
		a.Emit(0x4c, 0x63, 0xe8, 0x85, 0xc0) // movsxd r13,eax; test eax,eax
		failed := a.forward(jumpNotEqual)
		a.setFlags(flagUserBuffer, to.Flags)
		if c.unmap != 0 {
			a.unmap(c.expected, c.unmap)
		}
		done := a.forward(jump)
		a.land(failed)
		a.setFlags(shape, from.Flags)
		a.land(done)
	})
}

// unmap unmaps memory.
func (a *streamAssembler) unmap(address, size uint64) {
	a.LoadArgument(0, address)
	a.LoadArgument(1, size)
	a.SystemCall(unix.SYS_MUNMAP)
}

// unmapCode unmaps memory and returns.
func unmapCode(address, size uint64) []byte {
	var a streamAssembler
	a.unmap(address, size)
	a.Emit(0xc3)
	return a.Assembler
}
