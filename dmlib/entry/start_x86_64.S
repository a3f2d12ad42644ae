/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of what a running process is made to execute; entry.c is between
 * them. The controller puts the image at the beginning of a mapping of its own,
 * rbx leads to struct attune_entry, and the registers ask for mprotect(2): the
 * rest of the mapping becomes writable before anything is pushed.
 *
 * SIGURG stops a traced thread, and is ignored where no tracer lives and the
 * program has no handler: then the thread goes on, into the signal frame.
 */
#include <asm/unistd.h>
#include "offsets.h"

    .section .head, "ax"
    .long start
    .long marker

start:
    syscall
    test %rax, %rax
    jnz done
    mov %rbx, %rdi
    call entry_begin
done:
    mov $__NR_getpid, %eax
    syscall
    mov %eax, %edi
    mov $__NR_gettid, %eax
    syscall
    mov %eax, %esi
    mov $23, %edx               /* SIGURG */
    mov $__NR_tgkill, %eax
    syscall
marker:
    mov ENTRY_FRAME(%rbx), %rsp
    mov $__NR_rt_sigreturn, %eax
    syscall
    ud2

/* The start routine of a thread. Its last act takes the mapping away, by a
 * function of the C library, which returns to where the thread ends. */
    .globl entry_thread
    .hidden entry_thread
entry_thread:
    push %rbx
    mov %rdi, %rbx
    call entry_work
    mov ENTRY_BASE(%rbx), %rdi
    mov ENTRY_SIZE(%rbx), %rsi
    mov ENTRY_UNMAP(%rbx), %rax
    pop %rbx
    jmp *%rax

    .section .note.GNU-stack, "", @progbits
