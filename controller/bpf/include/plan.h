/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a probe finds at the place where it stands. One plan serves all places
 * of a point whose parameters lie alike: all functions of a file, or one static
 * probe. The lower half of a probe's attach cookie is the number of its plan; the upper half is
 * the process whose hits it takes, or 0: without uprobe_multi the kernel runs the return probes
 * of all processes at a return in one of them.
 */
#ifndef ATTUNE_PLAN_H
#define ATTUNE_PLAN_H

#include "registers.h"

#define OPERAND_NONE 0
#define OPERAND_REGISTER 1
#define OPERAND_CONSTANT 2
#define OPERAND_MEMORY 3 /* at base + (index << shift) + value */

#define NO_REGISTER 0xff

struct operand {
    u8 kind;      /* OPERAND_*                                             */
    u8 base;      /* register, as register_value() counts                  */
    u8 index;     /* register, NO_REGISTER for none                        */
    u8 shift;     /* of the index                                          */
    u8 size;      /* bytes: 1, 2, 4 or 8                                   */
    u8 is_signed; /* to be widened with its sign                           */
    u8 reserved[2];
    s64 value; /* constant or displacement                              */
};

#define PLAN_OPERANDS 12

/* The probe stands within a function: there is no return address to read. */
#define PLAN_STATIC (1u << 0)
/* Both ends of a call: the value is the time in between. */
#define PLAN_DURATION (1u << 1)
/* An exit that is probed at return instructions, not by a return probe. */
#define PLAN_INSTRUCTION (1u << 2)

/* (user) writes all of it. */
struct plan {
    u32 point;            /* 0: detached, nothing is taken any more    */
    u32 flags;            /* PLAN_*                                    */
    struct operand value; /* the point's own, at entries               */
    struct operand operand[PLAN_OPERANDS];
};

/* Reads a number of 1, 2, 4 or 8 bytes: little endian, so the rest is 0. */
INLINE bool read_number(u64 size, u64 address, u64 *bits) {
    *bits = 0;
    TELL_VERIFIER(size);
    if (size > sizeof(*bits))
        return false;
    return bpf_probe_read_user(bits, size, (const void *)address) == 0;
}

INLINE u64 widen_operand(const struct operand *operand, u64 bits) {
    u32 unused = operand->size < 8 ? 64 - 8 * operand->size : 0;

    unused &= 63;
    return operand->is_signed ? (u64)((s64)(bits << unused) >> unused) : bits << unused >> unused;
}

/* An operand whose registers lie in an array, as save_registers() fills it. */
INLINE bool read_operand(const u64 *registers, const struct operand *operand, u64 *value) {
    u64 bits = 0, address;

    switch (operand->kind) {
    case OPERAND_REGISTER:
        bits = registers[operand->base & (REGISTERS - 1)];
        break;
    case OPERAND_CONSTANT:
        *value = operand->value;
        return true;
    case OPERAND_MEMORY:
        address = operand->value;
        if (operand->base != NO_REGISTER)
            address += registers[operand->base & (REGISTERS - 1)];
        if (operand->index != NO_REGISTER)
            address += registers[operand->index & (REGISTERS - 1)] << (operand->shift & 3);
        if (!read_number(operand->size, address, &bits))
            return false;
        break;
    default:
        return false;
    }
    *value = widen_operand(operand, bits);
    return true;
}

#endif
