// SPDX-License-Identifier: Apache-2.0

package patch

import "encoding/binary"

// What actions look like in code. At the entry of a function no more may
// change than the action says, flags included: -fipa-ra lets a caller rely on
// any register that a local function does not touch. Below the stack pointer
// nothing lives, neither at an entry nor at a return, so that pushing is safe.

// assemble makes the new value, in one instruction unless it depends on the old.
func (p Parameter) assemble(a *assembler) {
	if p.Old == nil {
		p.set(a)
		return
	}
	// LEA and JRCXZ compare without flags.
	a.emit(0x51, 0x52) // save %rcx and %rdx
	p.toRCX(a)
	a.loadConstant(rdx, -truncated(*p.Old, p.Width))
	a.emit(0x48, 0x8d, 0x0c, 0x11) // lea (%rcx,%rdx), %rcx
	a.emit(0x5a)                   // pop %rdx
	a.emit(0xe3, 6)                // jrcxz 1f
	a.emit(0x59)                   // pop %rcx
	other := a.forward(0xe9)       // jmp 2f
	a.emit(0x59)                   // 1: pop %rcx
	p.set(a)
	a.here(other) // 2:
}

func (p Parameter) set(a *assembler) {
	if p.Value.Class == Real {
		a.setReal(p.Number, p.Value.Bits)
		return
	}
	a.loadConstant(integerRegisters[p.Number], p.Value.Bits)
}

func truncated(value uint64, bytes int) uint64 { return value << (64 - 8*bytes) >> (64 - 8*bytes) }

// toRCX moves the Width lowest bytes of a parameter, zero-extended.
// RDX is on the stack and untouched.
func (p Parameter) toRCX(a *assembler) {
	if p.Value.Class == Real {
		modrm := 0xc1 | byte(p.Number)<<3
		if p.Width == 8 {
			a.emit(0x66, 0x48, 0x0f, 0x7e, modrm) // movq %xmmN, %rcx
		} else {
			a.emit(0x66, 0x0f, 0x7e, modrm) // movd %xmmN, %ecx
		}
		return
	}
	r := integerRegisters[p.Number]
	high, low := byte(r>>3), byte(r&7)
	switch p.Width {
	case 1:
		a.emit(0x40|high, 0x0f, 0xb6, 0xc8|low) // movzbl %r, %ecx
	case 2:
		a.emit(0x40|high, 0x0f, 0xb7, 0xc8|low) // movzwl %r, %ecx
	case 4:
		a.emit(0x40|high<<2, 0x89, 0xc1|low<<3) // mov %r, %ecx
	default:
		a.emit(0x48|high<<2, 0x89, 0xc1|low<<3) // mov %r, %rcx
	}
}

// assemble returns, or goes on behind where another caller calls.
func (r Remove) assemble(a *assembler) {
	if len(r.Callers) == 0 {
		r.Result.leave(a)
		return
	}
	const savedBytes = 24
	a.saveFlags()
	a.emit(0x51) // push %rcx
	var hits []int
	for _, caller := range r.Callers {
		a.emit(0x48, 0x8b, 0x44, 0x24, savedBytes) // mov 24(%rsp), %rax: the return address
		// A call may be the caller's last instruction: it returns at End.
		a.loadConstant(rcx, caller.Start+1)
		a.emit(0x48, 0x29, 0xc8) // sub %rcx, %rax
		a.loadConstant(rcx, caller.End-caller.Start)
		a.emit(0x48, 0x39, 0xc8)                   // cmp %rcx, %rax
		hits = append(hits, a.forward(0x0f, 0x82)) // jb 1f
	}
	a.emit(0x59) // pop %rcx
	a.restoreFlags()
	other := a.forward(0xe9) // jmp 2f
	a.here(hits...)          // 1:
	a.emit(0x59)             // pop %rcx
	a.restoreFlags()
	r.Result.leave(a)
	a.here(other) // 2:
}

// leave returns from the function with the value.
func (v Value) leave(a *assembler) {
	switch v.Class {
	case Integer:
		a.loadConstant(rax, v.Bits)
	case Real:
		a.setReal(0, v.Bits)
	case None:
	}
	a.emit(0xc3) // ret
}

// assemble goes to the other function instead.
func (r Replace) assemble(a *assembler) {
	a.relative(word(r.Target), 0xff, 0x25) // jmp *target
}

// Where a call keeps what the called function may change, below %rbp.
const (
	savedRAX      = -8
	savedFirst    = -16 // rdi, rsi, rdx, rcx, r8, r9, each 8 below the one before
	savedAll      = -88
	vectorBytes   = 2752 // XSAVE in standard form, all of vectorState
	vectorState   = 0xe7 // x87, SSE, AVX, AVX-512; the processor leaves out what it lacks
	vectorRegs    = 160  // offset of xmm0, 16 bytes each
	vectorHeader  = 512
	legacyOpcode  = 0x04 // fxsave64 (%rsp)
	legacyRestore = 0x0c
)

// assemble calls a function with all registers, flags and errno kept.
func (c Call) assemble(a *assembler, e Environment) {
	a.emit(0x55, 0x48, 0x89, 0xe5)                   // push %rbp; mov %rsp, %rbp
	a.emit(0x50, 0x57, 0x56, 0x52, 0x51)             // push %rax, %rdi, %rsi, %rdx, %rcx
	a.emit(0x41, 0x50, 0x41, 0x51)                   // push %r8, %r9
	a.emit(0x41, 0x52, 0x41, 0x53, 0x53)             // push %r10, %r11, %rbx
	a.emit(0x9f, 0x0f, 0x90, 0xc0, 0x50)             // flags, and push them
	a.emit(0x48, 0x81, 0xec, 0xc0, 0x0a, 0x00, 0x00) // sub $2752, %rsp
	a.emit(0x48, 0x83, 0xe4, 0xc0)                   // and $-64, %rsp
	e.vectors(a, 0x24, legacyOpcode)
	e.keepErrno(a, 0x8b) // mov (%rax), %ebx
	reals := c.load(a)
	a.emit(0xb8, byte(reals), 0, 0, 0)     // mov $reals, %eax
	a.relative(word(c.Target), 0xff, 0x15) // call *target
	e.keepErrno(a, 0x89)                   // mov %ebx, (%rax)
	e.vectors(a, 0x2c, legacyRestore)
	a.emit(0x48, 0x8d, 0x65, 0x100+savedAll) // lea -88(%rbp), %rsp
	a.emit(0x58, 0x04, 0x7f, 0x9e)           // pop %rax; add $127, %al; sahf
	a.emit(0x5b, 0x41, 0x5b, 0x41, 0x5a)     // pop %rbx, %r11, %r10
	a.emit(0x41, 0x59, 0x41, 0x58)           // pop %r9, %r8
	a.emit(0x59, 0x5a, 0x5e, 0x5f, 0x58)     // pop %rcx, %rdx, %rsi, %rdi, %rax
	a.emit(0x5d)                             // pop %rbp
}

// vectors saves or restores vector and floating-point registers at the stack
// pointer.
func (e Environment) vectors(a *assembler, modern, legacy byte) {
	if !e.XSave {
		a.emit(0x48, 0x0f, 0xae, legacy, 0x24)
		return
	}
	saving := modern == 0x24
	if saving {
		a.emit(0x31, 0xc0) // xor %eax, %eax
		for offset := uint32(vectorHeader); offset < vectorHeader+64; offset += 8 {
			a.emit(0x48, 0x89, 0x84, 0x24) // mov %rax, offset(%rsp)
			a.code = binary.LittleEndian.AppendUint32(a.code, offset)
		}
	}
	a.emit(0xb8, vectorState, 0, 0, 0, 0x31, 0xd2) // mov $state, %eax; xor %edx, %edx
	a.emit(0x48, 0x0f, 0xae, modern, 0x24)         // xsave64 or xrstor64 (%rsp)
}

// keepErrno: call *errno_location; then errno to or from %ebx.
func (e Environment) keepErrno(a *assembler, move byte) {
	if e.ErrnoLocation != 0 {
		a.relative(word(e.ErrnoLocation), 0xff, 0x15)
		a.emit(move, 0x18)
	}
}

// load loads what the function is passed and returns how many reals.
func (c Call) load(a *assembler) (reals int) {
	integers := 0
	for _, arg := range c.Arguments {
		if arg.Source != Text && arg.Class == Real {
			arg.loadReal(a, reals)
			reals++
			continue
		}
		arg.loadInteger(a, integerRegisters[integers])
		integers++
	}
	return reals
}

func (arg Argument) loadInteger(a *assembler, r register) {
	high, low := byte(r>>3), byte(r&7)
	load := func(offset int) { a.emit(0x48|high<<2, 0x8b, 0x45|low<<3, byte(offset)) } // mov offset(%rbp), %r
	switch arg.Source {
	case Constant:
		a.loadConstant(r, arg.Bits)
	case FromParameter:
		load(savedFirst - 8*arg.Number)
	case FromResult:
		load(savedRAX)
	case Text:
		a.relative(append([]byte(arg.Text), 0), 0x48|high<<2, 0x8d, 0x05|low<<3) // lea text(%rip), %r
	}
}

func (arg Argument) loadReal(a *assembler, xmm int) {
	if arg.Source == Constant {
		a.relative(word(arg.Bits), 0xf2, 0x0f, 0x10, 0x05|byte(xmm)<<3) // movsd constant(%rip), %xmm
		return
	}
	a.emit(0xf2, 0x0f, 0x10, 0x84|byte(xmm)<<3, 0x24) // movsd saved(%rsp), %xmm
	a.code = binary.LittleEndian.AppendUint32(a.code, uint32(vectorRegs+16*arg.Number))
}
