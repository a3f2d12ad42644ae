/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The probed thread's registers, per architecture. User space names a register
 * by its index here; parameter_register() in the Go package is the other half.
 */
#ifndef ATTUNE_REGISTERS_H
#define ATTUNE_REGISTERS_H

#include "attune_bpf.h"

/* The verifier refuses loads from a context at a computed address. Written in
 * C, even with volatile, the compiler makes one such load of a whole switch. */
#define LOAD(regs, name)                                                                           \
    ({                                                                                             \
        u64 value_;                                                                                \
        __asm__ volatile("%0 = *(u64 *)(%1 + %2)"                                                  \
                         : "=r"(value_)                                                            \
                         : "r"(regs), "i"(__builtin_offsetof(struct registers, name)));            \
        value_;                                                                                    \
    })

/* Parameters of C functions that are kept from the entry of a call: the first
 * registers of register_value(). */
#define PARAMETERS 6

#if defined(__TARGET_ARCH_x86)

struct registers {
    u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    u64 orig_ax, ip, cs, flags, sp, ss;
};

/* By their numbers; those of parameters come first. */
#define EACH_PARAMETER(X)                                                                          \
    X(0, di)                                                                                       \
    X(1, si)                                                                                       \
    X(2, dx)                                                                                       \
    X(3, cx)                                                                                       \
    X(4, r8)                                                                                       \
    X(5, r9)

#define EACH_REGISTER(X)                                                                           \
    EACH_PARAMETER(X)                                                                              \
    X(6, ax)                                                                                       \
    X(7, bx)                                                                                       \
    X(8, r10)                                                                                      \
    X(9, r11)                                                                                      \
    X(10, r12)                                                                                     \
    X(11, r13)                                                                                     \
    X(12, r14)                                                                                     \
    X(13, r15)                                                                                     \
    X(14, bp)                                                                                      \
    X(15, sp)

#define REGISTERS 16
#define BASE_POINTER 14
#define STACK_POINTER 15

INLINE u64 return_value(struct registers *regs) { return LOAD(regs, ax); }

INLINE u64 program_counter(struct registers *regs) { return LOAD(regs, ip); }

/* Where a function's return leads, at its entry and at its return instruction:
 * 0 if the stack cannot be read. */
INLINE u64 return_address(struct registers *regs) {
    u64 address = 0;

    bpf_probe_read_user(&address, sizeof(address), (void *)LOAD(regs, sp));
    return address;
}

/* The stack pointer at the call's entry, seen at entry and at return, when the
 * return address has been popped. It tells one call of a thread from another,
 * recursion included. */
INLINE u64 frame_at_entry(struct registers *regs) { return LOAD(regs, sp); }

INLINE u64 frame_at_return(struct registers *regs) { return LOAD(regs, sp) - sizeof(u64); }

#else
#error "registers of this architecture are not described"
#endif

#define RETURN_REGISTER(number, name)                                                              \
    case number:                                                                                   \
        return LOAD(regs, name);

INLINE u64 register_value(struct registers *regs, u32 index) {
    switch (index) { EACH_REGISTER(RETURN_REGISTER) }
    return 0;
}

#define SAVE_REGISTER(number, name) to[number] = LOAD(regs, name);

/* All of them, as register_value() counts. */
INLINE void save_registers(struct registers *regs, u64 *to){EACH_REGISTER(SAVE_REGISTER)}

/* Those of parameters, at a function's entry. */
INLINE void save_parameters(struct registers *regs, u64 *to) {
    EACH_PARAMETER(SAVE_REGISTER)
}

#endif
