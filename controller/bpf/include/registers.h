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
    }
    return 0;
}

INLINE u64 return_value(struct registers *regs) { return LOAD(regs, ax); }

/* The stack pointer at the call's entry, seen at entry and at return, when the
 * return address has been popped. It tells one call of a thread from another,
 * recursion included. */
INLINE u64 frame_at_entry(struct registers *regs) { return LOAD(regs, sp); }

INLINE u64 frame_at_return(struct registers *regs) { return LOAD(regs, sp) - sizeof(u64); }

#elif defined(__TARGET_ARCH_arm64)

struct registers {
    u64 x0, x1, x2, x3, x4, x5, x6, x7, rest[23];
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

INLINE u64 frame_at_entry(struct registers *regs) { return LOAD(regs, sp); }

INLINE u64 frame_at_return(struct registers *regs) { return LOAD(regs, sp); }

#else
#error "registers of this architecture are not described"
#endif

#endif
