/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a measure point captures: the program that controller/capture encodes,
 * what its values mean, and how they travel. Compiled into DMLib and into the
 * BPF programs, so that both mean the same; it calls nothing and holds no
 * floating point instruction, of which a hook and the kernel have none.
 */
#ifndef ATTUNE_PROGRAM_H
#define ATTUNE_PROGRAM_H

/* clang-format off */

#ifndef ATTUNE_PROGRAM_NO_STDINT /* BPF brings its own */
#include <stdbool.h>
#include <stdint.h>
#endif

#define ATTUNE_CAPTURES 8u
#define ATTUNE_PREDICATES 8u
#define ATTUNE_STEPS 4u
#define ATTUNE_STRING 256u  /* bytes of one string ...             */
#define ATTUNE_STRINGS 512u /* ... and of all strings of a program */
#define ATTUNE_KEYS 1024u

/* Sources of a capture. */
#define ATTUNE_FROM_PARAMETER 1u       /* integer or address number `index`     */
#define ATTUNE_FROM_FLOAT_PARAMETER 2u /* floating point number `index`          */
#define ATTUNE_FROM_RETURNED 3u
#define ATTUNE_FROM_FLOAT_RETURNED 4u
#define ATTUNE_FROM_CONSTANT 5u        /* `value`, also a variable's address     */
#define ATTUNE_FROM_THREAD 7u
#define ATTUNE_FROM_CPU 8u
#define ATTUNE_FROM_CALL_SITE 9u
#define ATTUNE_FROM_STACK 10u          /* calls under way: a key, in the kernel only */

/* What the first step reads is part of the program for as long as it lives. */
#define ATTUNE_STAYS_MAPPED 1u

/* Types: what the last step reads, or the source gives. */
#define ATTUNE_TYPE_I8 1u
#define ATTUNE_TYPE_I16 2u
#define ATTUNE_TYPE_I32 3u
#define ATTUNE_TYPE_I64 4u
#define ATTUNE_TYPE_U8 5u
#define ATTUNE_TYPE_U16 6u
#define ATTUNE_TYPE_U32 7u
#define ATTUNE_TYPE_U64 8u
#define ATTUNE_TYPE_POINTER 9u
#define ATTUNE_TYPE_F32 10u
#define ATTUNE_TYPE_F64 11u
#define ATTUNE_TYPE_STRING 12u
#define ATTUNE_TYPE_SIZED_STRING 13u /* address and length: the kernel's probes only */

/* Kinds of captured values in a record. */
#define ATTUNE_KIND_UNSIGNED 1u
#define ATTUNE_KIND_SIGNED 2u
#define ATTUNE_KIND_FLOAT 3u
#define ATTUNE_KIND_POINTER 4u
#define ATTUNE_KIND_STRING 5u
#define ATTUNE_KIND_UNREADABLE 6u /* its word is 0 */

/* Operators of a predicate. */
#define ATTUNE_IS_EQUAL 1u
#define ATTUNE_IS_NOT_EQUAL 2u
#define ATTUNE_IS_LESS 3u
#define ATTUNE_IS_LESS_EQUAL 4u
#define ATTUNE_IS_GREATER 5u
#define ATTUNE_IS_GREATER_EQUAL 6u

struct attune_capture {
    uint8_t source;  /* ATTUNE_FROM_*                                          */
    uint8_t type;    /* ATTUNE_TYPE_*                                          */
    uint8_t index;   /* of a parameter within its class; of a constant:
                      * ATTUNE_STAYS_MAPPED                                    */
    uint8_t steps;   /* reads of memory, each at the address so far + offset:
                      * all but the last one read an address, the last one the
                      * type. 0: the source itself                             */
    uint32_t limit;  /* of a string, bytes                                     */
    uint64_t value;  /* constant                                               */
    int32_t offset[ATTUNE_STEPS];
};

/* (captured value & mask) comparison operand, as the capture's type compares. */
struct attune_predicate {
    uint8_t capture;
    uint8_t comparison; /* ATTUNE_IS_* */
    uint8_t pad[6];
    uint64_t mask;
    uint64_t operand;
};

struct attune_program {
    uint8_t captures;
    uint8_t predicates;
    uint8_t value;     /* capture that is summed up, + 1; 0: the point's own value */
    uint8_t key;       /* capture that aggregates are kept apart by, + 1; 0: none  */
    uint32_t table;    /* with a key: number of the table + 1                      */
    uint32_t max_keys;
    uint32_t places;   /* of the table: see aggregate.h                            */
    struct attune_capture capture[ATTUNE_CAPTURES];
    struct attune_predicate predicate[ATTUNE_PREDICATES];
    uint8_t pad[48];
};

/* ---- how captured values travel ---------------------------------------- */

/* A record of which something was captured is followed by continuations: the
 * upper eight bits of its flags say how many. They carry the words of all
 * captures one after another, three each: one word per capture, and after that
 * of a string, which holds its length in bytes and ATTUNE_STRING_CUT, its bytes
 * in as many words as they need, the last one filled with zeros.
 *
 * In the ring the point of a continuation is ATTUNE_CONTINUATION_POINT, outside
 * it is 0: neither is ever the point of a record. */
struct attune_continuation {
    uint64_t first;
    uint16_t point;
    uint16_t flags;  /* ATTUNE_RECORD_CONTINUATION                             */
    uint32_t kinds;  /* in the first: ATTUNE_KIND_* of capture c in nibble c;
                      * 0: no such capture. In the others 0.                   */
    uint64_t second;
    uint64_t third;
};

#define ATTUNE_RECORD_CONTINUATION (1u << 3)
#define ATTUNE_RECORD_FOLLOW_SHIFT 8 /* continuations that follow              */
#define ATTUNE_CONTINUATION_POINT 0xffffu
#define ATTUNE_CONTINUATION_WORDS 3u
#define ATTUNE_STRING_CUT (1ull << 32)

/* Words and continuations of the longest record. */
#define ATTUNE_WORDS_MAX (ATTUNE_CAPTURES + ATTUNE_STRINGS / 8 + ATTUNE_CAPTURES)
#define ATTUNE_CONTINUATIONS_MAX                                                               \
    ((ATTUNE_WORDS_MAX + ATTUNE_CONTINUATION_WORDS - 1) / ATTUNE_CONTINUATION_WORDS)

/* clang-format on */

/* ---- what values mean ---------------------------------------------------- */

#define ATTUNE_INLINE static inline __attribute__((always_inline))

ATTUNE_INLINE bool attune_type_signed(uint32_t type) {
    return type >= ATTUNE_TYPE_I8 && type <= ATTUNE_TYPE_I64;
}

ATTUNE_INLINE bool attune_type_float(uint32_t type) {
    return type == ATTUNE_TYPE_F32 || type == ATTUNE_TYPE_F64;
}

ATTUNE_INLINE bool attune_type_string(uint32_t type) {
    return type == ATTUNE_TYPE_STRING || type == ATTUNE_TYPE_SIZED_STRING;
}

/* Bytes of a number in memory. */
ATTUNE_INLINE uint32_t attune_type_size(uint32_t type) {
    switch (type) {
    case ATTUNE_TYPE_I8:
    case ATTUNE_TYPE_U8:
        return 1;
    case ATTUNE_TYPE_I16:
    case ATTUNE_TYPE_U16:
        return 2;
    case ATTUNE_TYPE_I32:
    case ATTUNE_TYPE_U32:
    case ATTUNE_TYPE_F32:
        return 4;
    default:
        return 8;
    }
}

ATTUNE_INLINE uint32_t attune_type_kind(uint32_t type) {
    if (attune_type_signed(type))
        return ATTUNE_KIND_SIGNED;
    if (attune_type_float(type))
        return ATTUNE_KIND_FLOAT;
    if (type == ATTUNE_TYPE_POINTER)
        return ATTUNE_KIND_POINTER;
    return attune_type_string(type) ? ATTUNE_KIND_STRING : ATTUNE_KIND_UNSIGNED;
}

/* How many bits a number needs; 0 needs none. */
ATTUNE_INLINE uint32_t attune_width(uint64_t bits) {
#ifdef ATTUNE_FOR_BPF /* has no __builtin_clzll */
    uint32_t width = 0;
#define ATTUNE_HALF(n)                                                                             \
    if (bits >> n) {                                                                               \
        width += n;                                                                                \
        bits >>= n;                                                                                \
    }
    ATTUNE_HALF(32)
    ATTUNE_HALF(16)
    ATTUNE_HALF(8)
    ATTUNE_HALF(4)
    ATTUNE_HALF(2)
    ATTUNE_HALF(1)
#undef ATTUNE_HALF
    return width + (uint32_t)bits;
#else
    return bits == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(bits);
#endif
}

/* The same number in IEEE 754 binary64 as in binary32. */
ATTUNE_INLINE uint64_t attune_widen_float(uint32_t bits) {
    uint64_t sign = (uint64_t)(bits >> 31) << 63;
    uint64_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    if (exponent == 0xff) /* infinite, or no number */
        return sign | 0x7ffull << 52 | fraction << 29;
    if (exponent == 0) {
        if (fraction == 0)
            return sign;
        uint32_t high = attune_width(fraction) - 1; /* subnormal: fraction * 2^-149 */
        exponent = 127 - 149 + high;
        fraction = (fraction << (23 - high)) & 0x7fffff;
        return sign | (exponent + 1023 - 127) << 52 | fraction << 29;
    }
    return sign | (exponent + 1023 - 127) << 52 | fraction << 29;
}

/* The 64 bits of a value whose low bits, as many as its type has, are these. */
ATTUNE_INLINE uint64_t attune_widen(uint32_t type, uint64_t bits) {
    switch (type) {
    case ATTUNE_TYPE_I8:
        return (uint64_t)((int64_t)(bits << 56) >> 56);
    case ATTUNE_TYPE_I16:
        return (uint64_t)((int64_t)(bits << 48) >> 48);
    case ATTUNE_TYPE_I32:
        return (uint64_t)((int64_t)(bits << 32) >> 32);
    case ATTUNE_TYPE_U8:
        return (uint8_t)bits;
    case ATTUNE_TYPE_U16:
        return (uint16_t)bits;
    case ATTUNE_TYPE_U32:
        return (uint32_t)bits;
    case ATTUNE_TYPE_F32:
        return attune_widen_float((uint32_t)bits);
    default:
        return bits;
    }
}

#define ATTUNE_SIGN (1ull << 63)

ATTUNE_INLINE bool attune_is_nan(uint64_t bits) { return (bits & ~ATTUNE_SIGN) > 0x7ffull << 52; }

/* Unsigned numbers in the order of the values; NaN excluded. */
ATTUNE_INLINE uint64_t attune_order(uint32_t type, uint64_t value) {
    if (attune_type_signed(type))
        return value ^ ATTUNE_SIGN;
    if (!attune_type_float(type))
        return value;
    if (value == ATTUNE_SIGN)
        value = 0; /* -0 is 0 */
    return value & ATTUNE_SIGN ? ~value : value | ATTUNE_SIGN;
}

ATTUNE_INLINE bool attune_holds(const struct attune_predicate *predicate, uint32_t type,
                                uint64_t value) {
    uint64_t operand = predicate->operand;
    value &= predicate->mask;
    if (attune_type_float(type) && (attune_is_nan(value) || attune_is_nan(operand)))
        return predicate->comparison == ATTUNE_IS_NOT_EQUAL;
    value = attune_order(type, value);
    operand = attune_order(type, operand);
    switch (predicate->comparison) {
    case ATTUNE_IS_EQUAL:
        return value == operand;
    case ATTUNE_IS_NOT_EQUAL:
        return value != operand;
    case ATTUNE_IS_LESS:
        return value < operand;
    case ATTUNE_IS_LESS_EQUAL:
        return value <= operand;
    case ATTUNE_IS_GREATER:
        return value > operand;
    case ATTUNE_IS_GREATER_EQUAL:
        return value >= operand;
    default:
        return false;
    }
}

/* A binary64 number as an integer: truncated, the nearest where it is too
 * great, 0 if it is no number. */
ATTUNE_INLINE int64_t attune_truncate(uint64_t bits) {
    uint32_t exponent = bits >> 52 & 0x7ff;
    uint64_t fraction = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    if (attune_is_nan(bits) || exponent < 1023)
        return 0;
    if (exponent >= 1023 + 63)
        return bits & ATTUNE_SIGN ? INT64_MIN : INT64_MAX;
    uint64_t whole =
        exponent < 1023 + 52 ? fraction >> (1023 + 52 - exponent) : fraction << (exponent - 1075);
    return bits & ATTUNE_SIGN ? -(int64_t)whole : (int64_t)whole;
}

/* What is summed up of a captured value. */
ATTUNE_INLINE uint64_t attune_summand(uint32_t type, uint64_t value) {
    return attune_type_float(type) ? (uint64_t)attune_truncate(value) : value;
}

/* Whether summands of a type are in two's complement. */
ATTUNE_INLINE bool attune_summand_signed(uint32_t type) {
    return attune_type_signed(type) || attune_type_float(type);
}

#endif
