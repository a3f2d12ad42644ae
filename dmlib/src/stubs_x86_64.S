/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 192 stubs of 64 bytes. A stub may stand before any function, so nothing but
 * r11, which every PLT may use, changes on the way. With a zero control word
 * it costs a load, an add, a compare and a jump.
 */
#include <cet.h>

#include "stubs_x86_64.h"

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

	.macro	KEEP registers:vararg
	.irp	register, \registers
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	.endm

	.macro	GIVE_BACK registers:vararg
	.irp	register, \registers
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.endr
	.endm

/* struct stub_registers, from its end on: first what TAKE_HIT changes, then the rest of
 * what C may change. Flags go through LAHF and SETO, for POPF is slow. */
	.macro	KEEP_SOME
	KEEP	rax
	lahf
	seto	%al
	KEEP	rax, r9, r8, rcx
	.endm

	.macro	GIVE_BACK_SOME
	GIVE_BACK rcx, r8, r9, rax
	addb	$127, %al
	sahf
	GIVE_BACK rax
	.endm

/* Calls C with the registers, and with the word behind them, an index or a return address,
 * plus a distance. */
	.macro	CALL_HIT hit, distance=0
	KEEP	rdx, rsi, rdi, r10, r11
	movq	80(%rsp), %rdi
	addq	$\distance, %rdi
	movq	%rsp, %rsi
	call	\hit
	GIVE_BACK r11, r10, rdi, rsi, rdx
	.endm

/* Makes the thread busy, as dm_enter does, if the range admits the hit. The thread's words
 * are in %fs:(%rax) afterwards, its generation in r8. */
	.macro	BEGIN_HIT full, done
	movq	dm_thread@gottpoff(%rip), %rax
	movq	dm_live_page+LIVE_GENERATION(%rip), %r8
	cmpq	%r8, %fs:THREAD_GENERATION(%rax)
	jne	\full
	cmpq	CONTROL_MIN(%rcx), %rdi
	jb	\done
	cmpq	CONTROL_MAX(%rcx), %rdi
	ja	\done
	movq	$THREAD_BUSY, %fs:THREAD_GENERATION(%rax)
	.endm

/* Takes a hit that is only summed up or only recorded, by its first parameter: what most
 * points ask for. It does what dm_sum and dm_event do, and is written in assembly because
 * C would change twice as many registers, which costs more than the hit (docs/design/0073).
 * unit_hits.c compares the two. The control is in rcx, the point's number in r9. It goes
 * on where the hit is dealt with, and to full where nothing was done. */
	.macro	TAKE_HIT full
	movq	(%rcx), %rax /* word and sample mask, as dm_asked */
	cmpw	$0, CONTROL_PARAMETER(%rcx)
	jne	\full
	cmpl	$CONTROL_AGGREGATE, %eax
	je	.Lsum\@
	cmpq	$CONTROL_EVENT, %rax
	jne	\full

	BEGIN_HIT \full, .Ldone\@ /* dm_event */
	movq	%fs:THREAD_NEXT(%rax), %rcx
	cmpq	%fs:THREAD_LIMIT(%rax), %rcx
	je	.Lno_room\@
	addq	$RECORD_SIZE, %fs:THREAD_NEXT(%rax)
	addl	$HOOK_COUNT, %r9d
	movq	%r9, RECORD_POINT(%rcx)
	movq	%rdi, RECORD_VALUE(%rcx)
	movq	%rsi, RECORD_EXTRA(%rcx)
	movq	%rdx, %r9
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, (%rcx)
	movq	%r9, %rdx
	movq	dm_thread@gottpoff(%rip), %rax
	movq	%fs:THREAD_SLOT(%rax), %rcx
	addq	$1, SLOT_HEAD(%rcx)
	movq	%r8, %fs:THREAD_GENERATION(%rax)
	jmp	.Ldone\@
.Lno_room\@:
	movq	%r8, %fs:THREAD_GENERATION(%rax)
	jmp	\full

.Lleast\@:
	movq	%rax, SUMS_LEAST(%r9,%rcx,8)
	jmp	.Lnot_least\@
.Lgreatest\@:
	movq	%rdi, SUMS_GREATEST(%r9,%rcx,8)
	jmp	.Lnot_greatest\@
.Lzero\@:
	xorl	%ecx, %ecx
	jmp	.Lbucket\@

.Lsum\@:
	BEGIN_HIT \full, .Ldone\@ /* dm_sum */
	imulq	$SUMS_SIZE, %r9, %r9
	addq	%fs:THREAD_SLOT(%rax), %r9
	movq	dm_parent(%rip), %rcx
	movl	HEADER_EPOCH(%rcx), %ecx
	andl	$1, %ecx
	movq	%rdi, %rax
	notq	%rax
	cmpq	SUMS_LEAST(%r9,%rcx,8), %rax
	ja	.Lleast\@
.Lnot_least\@:
	cmpq	SUMS_GREATEST(%r9,%rcx,8), %rdi
	ja	.Lgreatest\@
.Lnot_greatest\@:
	bsrq	%rdi, %rcx
	jz	.Lzero\@
	incl	%ecx
	movl	$63, %eax
	cmpl	%eax, %ecx
	cmoval	%eax, %ecx
.Lbucket\@:
	addl	$1, SUMS_HISTOGRAM(%r9,%rcx,4)
	addq	%rdi, SUMS_SUM(%r9)
	addq	$1, SUMS_COUNT(%r9)
	movq	dm_thread@gottpoff(%rip), %rax
	movq	%r8, %fs:THREAD_GENERATION(%rax)
.Ldone\@:
	.endm

/* The stub's number is on the stack, and its control in r11. */
	.type	dm_stub_common, @function
dm_stub_common:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	KEEP_SOME
	movq	%r11, %rcx
	movl	40(%rsp), %r9d
	TAKE_HIT 2f
1:	GIVE_BACK_SOME
	GIVE_BACK r11
	KEEP	rax
	leaq	dm_stub_target(%rip), %rax
	movq	(%rax,%r11,8), %r11
	GIVE_BACK rax
	jmpq	*%r11
	.cfi_def_cfa_offset 56
2:	CALL_HIT dm_stub_hit
	jmp	1b
	.cfi_endproc
	.size	dm_stub_common, .-dm_stub_common

/* Called by islands at the entry, and where it ends, of any function, also of
 * one with a calling convention of its own (GCC's -fipa-ra lets a caller keep
 * values in registers that the function does not use): nothing changes, flags
 * included. The numbers are found by the return address. */
	.hidden	dm_patch_entry
	.globl	dm_patch_entry
	.balign	64
	.type	dm_patch_entry, @function
dm_patch_entry:
	.cfi_startproc
	endbr64
	KEEP_SOME
	movq	40(%rsp), %rcx
	movl	NUMBER_BEHIND(%rcx), %r9d
	cmpl	$STUB_COUNT, %r9d /* no other points behind it, either */
	jae	2f
	movl	%r9d, %ecx
	shll	$CONTROL_SHIFT, %ecx
	leaq	dm_static_control+HOOK_COUNT*CONTROL_SIZE(%rip), %rax
	addq	%rax, %rcx
	addq	dm_live_page(%rip), %rcx
	TAKE_HIT 2f
1:	GIVE_BACK_SOME
	ret
	.cfi_def_cfa_offset 48
2:	CALL_HIT dm_patch_hit, NUMBER_BEHIND
	jmp	1b
	.cfi_endproc
	.size	dm_patch_entry, .-dm_patch_entry

	.hidden	dm_patch_exit
	.globl	dm_patch_exit
	.balign	64
	.type	dm_patch_exit, @function
dm_patch_exit:
	.cfi_startproc
	endbr64
	KEEP_SOME
	CALL_HIT dm_patch_left, NUMBER_BEHIND
	GIVE_BACK_SOME
	ret
	.cfi_endproc
	.size	dm_patch_exit, .-dm_patch_exit

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
