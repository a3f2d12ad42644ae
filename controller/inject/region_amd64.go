// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// stub is what the thread executes, with rbx leading to the block below:
//
//	mov  rdi,[rbx]          path
//	mov  esi,[rbx+8]        mode
//	call [rbx+16]           dlopen
//	mov  [rbx+64],rax
//	test rax,rax
//	jz   fail
//	mov  rdi,rax
//	mov  rsi,[rbx+24]       "attune_dm_attach"
//	call [rbx+32]           dlsym
//	test rax,rax
//	jz   fail
//	mov  rdi,[rbx+40]       request
//	call rax
//	mov  [rbx+72],eax
//	mov  dword [rbx+80],1
//	jmp  end
//	fail:
//	mov  dword [rbx+80],2
//	cmp  qword [rbx+48],0
//	je   end
//	call [rbx+48]           dlerror
//	mov  [rbx+88],rax
//	end:
//	tgkill(getpid(), gettid(), SIGURG)
//	marker:
//	mov  rsp,[rbx+56]       signal frame
//	mov  eax,15             rt_sigreturn
//	syscall
//	ud2
//
// SIGURG stops a traced thread, and is ignored where no tracer lives and the
// program has no handler: then the thread goes on, into the signal frame.
var stub = []byte{
	0x48, 0x8b, 0x3b, 0x8b, 0x73, 0x08, 0xff, 0x53, 0x10, 0x48, 0x89, 0x43,
	0x40, 0x48, 0x85, 0xc0, 0x74, 0x21, 0x48, 0x89, 0xc7, 0x48, 0x8b, 0x73,
	0x18, 0xff, 0x53, 0x20, 0x48, 0x85, 0xc0, 0x74, 0x12, 0x48, 0x8b, 0x7b,
	0x28, 0xff, 0xd0, 0x89, 0x43, 0x48, 0xc7, 0x43, 0x50, 0x01, 0x00, 0x00,
	0x00, 0xeb, 0x15, 0xc7, 0x43, 0x50, 0x02, 0x00, 0x00, 0x00, 0x48, 0x83,
	0x7b, 0x30, 0x00, 0x74, 0x07, 0xff, 0x53, 0x30, 0x48, 0x89, 0x43, 0x58,
	0xb8, 0x27, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x89, 0xc7, 0xb8, 0xba, 0x00,
	0x00, 0x00, 0x0f, 0x05, 0x89, 0xc6, 0xba, 0x17, 0x00, 0x00, 0x00, 0xb8,
	0xea, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x48, 0x8b, 0x63, 0x38, 0xb8, 0x0f,
	0x00, 0x00, 0x00, 0x0f, 0x05, 0x0f, 0x0b,
}

// stubMarker is the offset of the marker in the stub, stubTail that of its end,
// which stops the thread and restores it.
const (
	stubMarker = 0x66
	stubTail   = 0x48
)

// executeStub has the same tail behind
//
//	call [rbx+16]           code
//	mov  [rbx+64],rax
//	mov  dword [rbx+80],1
var executeStub = slices.Concat([]byte{
	0xff, 0x53, 0x10, 0x48, 0x89, 0x43, 0x40, 0xc7, 0x43, 0x50, 0x01, 0x00, 0x00, 0x00,
}, stub[stubTail:])

// executeMarker is the offset of the marker in executeStub.
const executeMarker = 14 + stubMarker - stubTail

// Fields of the block that the stub writes.
const (
	blockValue   = 64
	blockResult  = 72
	blockOutcome = 80 // 1: attach was called, 2: loading did not work
	blockMessage = 88
	blockEnd     = 96
)

// The mapping: one page of code, data, and at its end the stack. dlopen keeps
// paths and file headers on its stack.
const (
	pageBytes  = 4096
	stackBytes = 256 << 10
	codeBytes  = pageBytes
	alignment  = 64
)

// region is the content of the mapping; addresses are offsets until place.
type region struct {
	data     []byte // from offset 0
	marker   int    // offset of the stub's marker
	block    []word // what the stub finds at rbx
	requests int    // offset of the attach request
	frame    int    // of the signal frame
	vectors  int    // of the XSAVE area in it
}

// word is one of the block: a number, or an offset in the mapping.
type word struct {
	value  uint64
	inside bool
}

func inside(offset int) word { return word{uint64(offset), true} }

// newRegion has a stub at its beginning, and room for the block.
func newRegion(stub []byte, marker int) *region {
	r := &region{marker: marker}
	r.reserve(codeBytes)
	copy(r.data, stub)
	r.reserve(blockEnd) // at codeBytes
	return r
}

// reserve appends n zero bytes and returns their offset.
func (r *region) reserve(n int) int {
	r.data = append(r.data, make([]byte, (alignment-len(r.data)%alignment)%alignment)...)
	at := len(r.data)
	r.data = append(r.data, make([]byte, n)...)
	return at
}

func (r *region) put(content []byte) int {
	at := r.reserve(len(content))
	copy(r.data[at:], content)
	return at
}

// size is that of the whole mapping, bytes.
func (r *region) size() uint64 {
	return (uint64(len(r.data)) + stackBytes + pageBytes - 1) &^ (pageBytes - 1)
}

func (r *region) word(at int, value uint64) { binary.LittleEndian.PutUint64(r.data[at:], value) }

// complete adds the signal frame, which is the last of the content.
func (r *region) complete(vectorBytes int) *region {
	r.frame = r.reserve(frameBytes)
	r.vectors = r.reserve(vectorBytes + 4)
	return r
}

// attachRegion lays out what loading DMLib needs.
func (p *plan) attachRegion(vectorBytes int) *region {
	r := newRegion(stub, stubMarker)
	path := r.put(append([]byte(p.options.Library), 0))
	name := r.put([]byte("attune_dm_attach\x00"))
	r.requests = r.put(p.request())
	r.complete(vectorBytes)
	c := p.calls
	r.block = []word{
		inside(path), {value: uint64(c.mode)}, {value: c.open}, inside(name), {value: c.sym},
		inside(r.requests), {value: c.message}, inside(r.frame),
	}
	return r
}

// place fills in the addresses once the mapping is at base.
func (r *region) place(base uint64, s state) {
	for i, w := range r.block {
		if w.inside {
			w.value += base
		}
		r.word(codeBytes+8*i, w.value)
	}
	r.fillFrame(base+uint64(r.vectors), s)
}

// Offsets in a signal frame (struct ucontext of the kernel).
const (
	frameAltFlags = 24
	frameContext  = 40
	frameSegments = frameContext + 18*8
	framePointer  = frameContext + 23*8
	frameMask     = frameContext + 32*8
	frameBytes    = 512

	ucVectors  = 1 // UC_FP_XSTATE
	ucSegments = 2 // UC_SIGCONTEXT_SS
	ucStrict   = 4 // UC_STRICT_RESTORE_SS

	vectorSoftware = 464 // software bytes of an XSAVE area
	vectorMagic1   = 0x46505853
	vectorMagic2   = 0x46505845
)

// fillFrame writes the frame that rt_sigreturn(2) restores the thread from if
// nobody else does.
func (r *region) fillFrame(vectors uint64, s state) {
	g := afterwards(s.regs)
	f := r.frame
	r.word(f, ucVectors|ucSegments|ucStrict)
	// Invalid flags: the alternate signal stack stays what it is.
	binary.LittleEndian.PutUint32(r.data[f+frameAltFlags:], 0x7fffffff)
	context := []uint64{
		g.R8, g.R9, g.R10, g.R11, g.R12, g.R13, g.R14, g.R15,
		g.Rdi, g.Rsi, g.Rbp, g.Rbx, g.Rdx, g.Rax, g.Rcx, g.Rsp, g.Rip, g.Eflags,
		g.Cs&0xffff | g.Ss&0xffff<<48,
	}
	for i, word := range context {
		r.word(f+frameContext+8*i, word)
	}
	r.word(f+framePointer, vectors)
	r.word(f+frameMask, s.mask)

	area := r.data[r.vectors:]
	copy(area, s.extra)
	features := binary.LittleEndian.Uint64(area[vectorSoftware:])
	n := uint32(len(s.extra))
	binary.LittleEndian.PutUint32(area[vectorSoftware:], vectorMagic1)
	binary.LittleEndian.PutUint32(area[vectorSoftware+4:], n+4)
	binary.LittleEndian.PutUint64(area[vectorSoftware+8:], features)
	binary.LittleEndian.PutUint32(area[vectorSoftware+16:], n)
	binary.LittleEndian.PutUint32(area[n:], vectorMagic2)
}

// afterwards does what the kernel does on the way out of an interrupted system
// call: the instruction is executed again.
func afterwards(g unix.PtraceRegs) unix.PtraceRegs {
	if !inCall(&g) {
		return g
	}
	if int64(g.Rax) == restartBlock {
		g.Rax = unix.SYS_RESTART_SYSCALL
	} else {
		g.Rax = g.Orig_rax
	}
	g.Rip -= syscallBytes
	g.Orig_rax = noSyscall
	return g
}
