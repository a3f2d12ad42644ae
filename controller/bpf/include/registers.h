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

INLINE u64 register_value(struct registers *regs, u32 index) {
    switch (index) {
    case 0:
        return LOAD(regs, di);
    case 1:
        return LOAD(regs, si);
    case 2:
        return LOAD(regs, dx);
    case 3:
        return LOAD(regs, cx);
    case 4:
        return LOAD(regs, r8);
    case 5:
        return LOAD(regs, r9);
    case 6:
        return LOAD(regs, ax);
    case 7:
        return LOAD(regs, bx);
    case 8:
        return LOAD(regs, r10);
    case 9:
        return LOAD(regs, r11);
    case 10:
        return LOAD(regs, r12);
    case 11:
        return LOAD(regs, r13);
    case 12:
        return LOAD(regs, r14);
    case 13:
        return LOAD(regs, r15);
    case 14:
        return LOAD(regs, bp);
    case 15:
        return LOAD(regs, sp);
    }
    return 0;
}

INLINE u64 return_value(struct registers *regs) { return LOAD(regs, ax); }

INLINE u64 program_counter(struct registers *regs) { return LOAD(regs, ip); }

/* All of them, as register_value() counts. */
#define REGISTERS 16

INLINE void save_registers(struct registers *regs, u64 *to) {
    to[0] = LOAD(regs, di);
    to[1] = LOAD(regs, si);
    to[2] = LOAD(regs, dx);
    to[3] = LOAD(regs, cx);
    to[4] = LOAD(regs, r8);
    to[5] = LOAD(regs, r9);
    to[6] = LOAD(regs, ax);
    to[7] = LOAD(regs, bx);
    to[8] = LOAD(regs, r10);
    to[9] = LOAD(regs, r11);
    to[10] = LOAD(regs, r12);
    to[11] = LOAD(regs, r13);
    to[12] = LOAD(regs, r14);
    to[13] = LOAD(regs, r15);
    to[14] = LOAD(regs, bp);
    to[15] = LOAD(regs, sp);
}

/* At a function's entry. */
INLINE void save_parameters(struct registers *regs, u64 *parameters) {
    parameters[0] = LOAD(regs, di);
    parameters[1] = LOAD(regs, si);
    parameters[2] = LOAD(regs, dx);
    parameters[3] = LOAD(regs, cx);
    parameters[4] = LOAD(regs, r8);
    parameters[5] = LOAD(regs, r9);
}

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

#elif defined(__TARGET_ARCH_arm64)

struct registers {
    u64 x0, x1, x2, x3, x4, x5, x6, x7, x8_to_x29[22], x30;
    u64 sp, pc, pstate;
};

INLINE u64 register_value(struct registers *regs, u32 index) {
    switch (index) {
    case 0:
        return LOAD(regs, x0);
    case 1:
        return LOAD(regs, x1);
    case 2:
        return LOAD(regs, x2);
    case 3:
        return LOAD(regs, x3);
    case 4:
        return LOAD(regs, x4);
    case 5:
        return LOAD(regs, x5);
    case 6:
        return LOAD(regs, x6);
    case 7:
        return LOAD(regs, x7);
    }
    return 0;
}

INLINE u64 return_value(struct registers *regs) { return LOAD(regs, x0); }

INLINE u64 program_counter(struct registers *regs) { return LOAD(regs, pc); }

INLINE void save_parameters(struct registers *regs, u64 *parameters) {
    parameters[0] = LOAD(regs, x0);
    parameters[1] = LOAD(regs, x1);
    parameters[2] = LOAD(regs, x2);
    parameters[3] = LOAD(regs, x3);
    parameters[4] = LOAD(regs, x4);
    parameters[5] = LOAD(regs, x5);
}

#define REGISTERS 8

INLINE void save_registers(struct registers *regs, u64 *to) {
    save_parameters(regs, to);
    to[6] = LOAD(regs, x6);
    to[7] = LOAD(regs, x7);
}

INLINE u64 return_address(struct registers *regs) { return LOAD(regs, x30); }

INLINE u64 frame_at_entry(struct registers *regs) { return LOAD(regs, sp); }

INLINE u64 frame_at_return(struct registers *regs) { return LOAD(regs, sp); }

#else
#error "registers of this architecture are not described"
#endif

#endif
