/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 192 stubs of 64 bytes. A stub may stand before any function, so nothing but
 * r11, which every PLT may use, changes on the way. With a zero control word
 * it costs a load, an add, a compare and a jump.
 */
#include <cet.h>

#define STUB_COUNT 192
#define HOOK_COUNT 64
#define CONTROL_SIZE 32
#define ISLAND_CALL 6 /* ATTUNE_ISLAND_CALL */
#define ISLAND_NUMBER 32

	.text

	.hidden	dm_stub_code
	.globl	dm_stub_code
	.hidden	dm_stub_code_end
	.globl	dm_stub_code_end
	.hidden	dm_stub_unbound
	.globl	dm_stub_unbound
	.hidden	dm_preserving_vectors
	.globl	dm_preserving_vectors

	.balign	64
	.type	dm_stub_code, @function
dm_stub_code:
	.cfi_startproc
	.set	index, 0
	.rept	STUB_COUNT
	.balign	64
	endbr64
	leaq	dm_static_control+(HOOK_COUNT+index)*CONTROL_SIZE(%rip), %r11
	addq	dm_live_page(%rip), %r11
	cmpl	$0, (%r11)
	jne	1f
	jmpq	*dm_stub_target+index*8(%rip)
1:	pushq	$index
	.cfi_adjust_cfa_offset 8
	jmp	dm_stub_common
	.cfi_adjust_cfa_offset -8
	.set	index, index+1
	.endr
	.balign	64
dm_stub_code_end:
	.cfi_endproc
	.size	dm_stub_code, dm_stub_code_end-dm_stub_code

/* The stub's number is on the stack. */
	.type	dm_stub_common, @function
dm_stub_common:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	.irp	register, rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	movq	72(%rsp), %rdi
	movq	%rsp, %rsi
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	dm_stub_hit
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp	register, r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.endr
	popq	%r11
	.cfi_adjust_cfa_offset -8
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	leaq	dm_stub_target(%rip), %rax
	movq	(%rax,%r11,8), %r11
	popq	%rax
	.cfi_adjust_cfa_offset -8
	jmpq	*%r11
	.cfi_endproc
	.size	dm_stub_common, .-dm_stub_common

/* Called by islands at the entry, and where it ends, of any function, also of
 * one with a calling convention of its own (GCC's -fipa-ra lets a caller keep
 * values in registers that the function does not use): nothing changes, flags
 * included. The numbers are found by the return address. Flags go through LAHF
 * and SETO, for POPF is slow. */
	.macro	PATCH_HOOK name, hit
	.hidden	\name
	.globl	\name
	.balign	64
	.type	\name, @function
\name:
	.cfi_startproc
	endbr64
	.irp	register, rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	lahf
	seto	%al
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	movq	80(%rsp), %rdi
	addq	$ISLAND_NUMBER-ISLAND_CALL, %rdi
	leaq	8(%rsp), %rsi
	call	\hit
	popq	%rax
	.cfi_adjust_cfa_offset -8
	addb	$127, %al
	sahf
	.irp	register, r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.endr
	ret
	.cfi_endproc
	.size	\name, .-\name
	.endm

	PATCH_HOOK dm_patch_entry, dm_patch_hit
	PATCH_HOOK dm_patch_exit, dm_patch_left

	.type	dm_stub_unbound, @function
dm_stub_unbound:
	.cfi_startproc
	endbr64
	ud2
	.cfi_endproc
	.size	dm_stub_unbound, .-dm_stub_unbound

/* int dm_preserving_vectors(int (*function)(void *), void *argument) */
#define XSAVE_SIZE 2752 /* 2688 for everything in the mask, whole lines */
	.type	dm_preserving_vectors, @function
dm_preserving_vectors:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rbx
	.cfi_offset %rbx, -24
	subq	$(XSAVE_SIZE+64), %rsp
	andq	$-64, %rsp
	movl	dm_vector_state(%rip), %eax
	testl	%eax, %eax
	jz	1f
	xorl	%edx, %edx
	.irp	offset, 512, 520, 528, 536, 544, 552, 560, 568
	movq	%rdx, \offset(%rsp)
	.endr
	xsave64	(%rsp)
	jmp	2f
1:	fxsave64 (%rsp)
2:	movq	%rdi, %rax
	movq	%rsi, %rdi
	call	*%rax
	movl	%eax, %ebx
	movl	dm_vector_state(%rip), %eax
	testl	%eax, %eax
	jz	3f
	xorl	%edx, %edx
	xrstor64 (%rsp)
	jmp	4f
3:	fxrstor64 (%rsp)
4:	movl	%ebx, %eax
	movq	-8(%rbp), %rbx
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	dm_preserving_vectors, .-dm_preserving_vectors

	.section .note.GNU-stack, "", @progbits
