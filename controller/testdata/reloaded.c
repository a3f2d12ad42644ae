/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is unloaded and loaded again. */
static volatile long seven = 7;
long r_counted(long a);
long r_removed(long a);
long r_counted(long a) { return a + seven; }

#ifdef WHOLE_JUMP
/* One byte would make it jump ten bytes on, into what is here: five are needed,
 * with two instructions in them. */
__asm__(".text; .globl r_removed; .type r_removed, @function; r_removed: nop; addl $0, %eax;"
        "leaq 14(%rdi), %rax; ret; .size r_removed, .-r_removed");
#else
long r_removed(long a) { return a + 2 * seven; }
#endif
