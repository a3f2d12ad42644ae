/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Takes the values that a program of captures names. What they mean stands in
 * attune/program.h, for these programs and for DMLib alike.
 *
 * The kernel gives a probe the integer registers only: programs that take
 * floating point parameters or results from registers never come here.
 *
 * What is not INLINE is a function of its own to the verifier, which looks at
 * such a one once instead of at each turn of a loop: seconds otherwise.
 */
#ifndef ATTUNE_CAPTURE_H
#define ATTUNE_CAPTURE_H

#include "attune/program.h"
#include "plan.h"

/* Where a hit's captures come from. */
struct origin {
    u64 registers[REGISTERS]; /* at a return, of parameters: as they were at the entry */
    u64 returned;
    u64 call_site; /* 0: cannot be read */
    u32 thread;
    u32 cpu;
};

/* Captured values of one hit. Of a string the value is its address, and of one with a
 * length that as well, in the upper bits: see sized_string(). */
struct taken {
    u64 value[ATTUNE_CAPTURES];
    u32 kinds; /* ATTUNE_KIND_* of capture c in nibble c */
    u32 reserved;
};

INLINE u32 kind_of(u32 kinds, u32 capture) { return kinds >> (4 * capture & 31) & 15; }

INLINE bool is_readable(const struct taken *taken, u32 capture) {
    return kind_of(taken->kinds, capture) != ATTUNE_KIND_UNREADABLE;
}

/* The value that a capture begins with. */
INLINE bool source(const struct origin *from, const struct plan *plan,
                   const struct attune_capture *capture, u64 *value) {
    u64 index = capture->index;

    switch (capture->source) {
    case ATTUNE_FROM_PARAMETER:
    case ATTUNE_FROM_FLOAT_PARAMETER: /* of a static probe, in memory */
        TELL_VERIFIER(index);
        return index < PLAN_OPERANDS && read_operand(from->registers, &plan->operand[index], value);
    case ATTUNE_FROM_RETURNED:
        *value = from->returned;
        return true;
    case ATTUNE_FROM_CONSTANT:
        *value = capture->value;
        return true;
    case ATTUNE_FROM_THREAD:
        *value = from->thread;
        return true;
    case ATTUNE_FROM_CPU:
        *value = from->cpu;
        return true;
    case ATTUNE_FROM_CALL_SITE:
        *value = from->call_site;
        return *value != 0;
    case ATTUNE_FROM_STACK: /* taken when it is known that it is wanted */
        return true;
    }
    return false;
}

NOINLINE u64 summand(u32 type, u64 value) { return attune_summand(type, value); }

NOINLINE int compare(u32 comparison, u32 type, u64 value, u64 operand) {
    struct attune_predicate predicate = {
        .comparison = comparison, .mask = ~0ull, .operand = operand};

    return attune_holds(&predicate, type, value);
}

#define LENGTH_SHIFT 48
#define LENGTH_MOST 0xffffull /* more than any limit */

/* A string's address with its length; false of an address beyond those that a process
 * has unless it asks for them. */
INLINE bool sized_string(u64 address, u64 length, u64 *value) {
    if (address >> LENGTH_SHIFT)
        return false;
    *value = address | (length > LENGTH_MOST ? LENGTH_MOST : length) << LENGTH_SHIFT;
    return true;
}

/* A string of a length that lies behind its address. */
INLINE bool read_sized_string(u64 at, u64 *value) {
    u64 address, length;

    return read_number(8, at, &address) && read_number(8, at + 8, &length) &&
           sized_string(address, length, value);
}

/* A string whose address is a parameter and whose length is the next one. */
INLINE bool sized_parameter(const struct origin *from, const struct plan *plan,
                            const struct attune_capture *capture, u64 *value) {
    u64 index = capture->index + 1u, length;

    TELL_VERIFIER(index);
    return index < PLAN_OPERANDS && read_operand(from->registers, &plan->operand[index], &length) &&
           sized_string(*value, length, value);
}

/* Walks through memory from where the source leads. */
INLINE bool follow(const struct attune_capture *capture, u64 *value) {
    u64 bits = *value;
    u32 type = capture->type, steps = capture->steps;

    for (u32 i = 0; i < ATTUNE_STEPS && i < steps; i++) {
        bool last = i + 1 == steps;
        u64 address = bits + (s64)capture->offset[i];

        if (last && attune_type_string(type)) {
            *value = address; /* read when it is known that it is wanted */
            return true;
        }
        if (!read_number(last ? attune_type_size(type) : 8, address, &bits))
            return false;
    }
    /* A constant has all its bits. */
    if (steps || capture->source != ATTUNE_FROM_CONSTANT)
        *value = attune_widen(type, bits);
    return true;
}

/* Takes one capture of a program. */
NOINLINE int take_one(const struct origin *from, const struct plan *plan,
                      const struct attune_program *program, struct taken *taken, u64 number) {
    const struct attune_capture *capture;
    u32 kind = ATTUNE_KIND_UNREADABLE;
    u64 value = 0;

    TELL_VERIFIER(number);
    if (!from || !plan || !program || !taken || number >= ATTUNE_CAPTURES)
        return 0;
    capture = &program->capture[number];
    if (source(from, plan, capture, &value) && follow(capture, &value))
        kind = attune_type_kind(capture->type);
    taken->value[number] = kind == ATTUNE_KIND_UNREADABLE ? 0 : value;
    taken->kinds |= kind << (4 * number);
    return 0;
}

/* Completes the capture of a string with a length. Apart from take_one, for the stack. */
NOINLINE int take_length(const struct origin *from, const struct plan *plan,
                         const struct attune_program *program, struct taken *taken, u64 number) {
    const struct attune_capture *capture;
    u64 value;
    bool known;

    TELL_VERIFIER(number);
    if (!from || !plan || !program || !taken || number >= ATTUNE_CAPTURES)
        return 0;
    capture = &program->capture[number];
    value = taken->value[number];
    if (capture->steps)
        known = read_sized_string(value, &value);
    else
        known = sized_parameter(from, plan, capture, &value);
    taken->value[number] = known ? value : 0;
    if (!known)
        taken->kinds = (taken->kinds & ~(15u << (4 * number))) | ATTUNE_KIND_UNREADABLE
                                                                     << (4 * number);
    return 0;
}

/* Whether all predicates hold. */
INLINE bool all_hold(const struct attune_program *program, const struct taken *taken) {
    for (u32 i = 0; i < ATTUNE_PREDICATES && i < program->predicates; i++) {
        const struct attune_predicate *p = &program->predicate[i];
        u32 number = p->capture & (ATTUNE_CAPTURES - 1);

        if (!is_readable(taken, number) || !compare(p->comparison, program->capture[number].type,
                                                    taken->value[number] & p->mask, p->operand))
            return false;
    }
    return true;
}

#endif
