/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What is counted of the hits of a measure point: an aggregate, and tables of
 * aggregates that a captured key keeps apart. Compiled into DMLib and into the
 * BPF programs; controller/aggregate reads what either of them leaves. Nothing
 * here calls anything.
 */
#ifndef ATTUNE_AGGREGATE_H
#define ATTUNE_AGGREGATE_H

#include "program.h"

/* clang-format off */

#define ATTUNE_HIST_BUCKETS 64u

/* All zeros until the first hit. Everything but the extremes only grows, and
 * wraps: the controller takes differences. Of the two pairs of extremes the one
 * of the interval's parity belongs to the running interval. The controller clears
 * the other pair before it begins the next interval, so that no clearing races
 * with a hit. The least value is kept as its complement: both only rise. Extremes
 * of signed values have the sign bit flipped, which gives them the order of
 * unsigned ones. */
struct attune_aggregate {
    uint64_t count;       /* written last: hits that are in the other fields     */
    uint64_t sum;
    uint64_t least[2];    /* complement                                          */
    uint64_t greatest[2];
    uint64_t key;         /* in a table                                          */
    uint32_t calls;       /* DMLib: hits of one thread, for its sample mask      */
    uint32_t reserved;
    /* Bucket b counts values of bit width b, the last bucket everything above,
     * and bucket 0 of signed values all that are not above 0. */
    uint32_t histogram[ATTUNE_HIST_BUCKETS];
};

/* A table is an array of places, each an aggregate: a power of two of them, at
 * least twice as many as it may have keys. A place gets its key by one
 * compare-and-swap and keeps it. Place 0 is that of key 0, and its `key` only
 * says whether it is taken. */
#define ATTUNE_PLACES (2 * ATTUNE_KEYS)

/* So far from where its search begins a key is hardly ever; it has no place then. */
#define ATTUNE_PLACE_STEPS 64u

/* clang-format on */

/* What a word holds that others may be writing. Of the kernel's compiler an atomic load
 * of this kind is not to be had. */
#ifdef ATTUNE_FOR_BPF
#define ATTUNE_LOOK(word) (*(volatile __typeof__(*(word)) *)(word))
#else
#define ATTUNE_LOOK(word) __atomic_load_n(word, __ATOMIC_RELAXED)
#endif

/* A try fails only if another thread has raised the word. */
ATTUNE_INLINE void attune_raise(uint64_t *word, uint64_t value) {
#ifdef ATTUNE_FOR_BPF
    const uint32_t tries = 16; /* the verifier wants a bound */
#else
    const uint32_t tries = UINT32_MAX;
#endif
    for (uint32_t i = 0; i < tries; i++) {
        uint64_t seen = ATTUNE_LOOK(word);
        if (value <= seen || __sync_val_compare_and_swap(word, seen, value) == seen)
            return;
    }
}

ATTUNE_INLINE uint32_t attune_bucket(uint64_t value, bool is_signed) {
    if (is_signed && (int64_t)value < 0)
        return 0;
    uint32_t width = attune_width(value);
    return width < ATTUNE_HIST_BUCKETS ? width : ATTUNE_HIST_BUCKETS - 1;
}

/* A value as extremes are compared. */
ATTUNE_INLINE uint64_t attune_ordered(uint64_t value, bool is_signed) {
    return is_signed ? value ^ ATTUNE_SIGN : value;
}

/* Adds a hit to an aggregate to which others may be adding. A thread that is killed
 * in here leaves a hit that is counted in part. */
ATTUNE_INLINE void attune_add(struct attune_aggregate *to, uint64_t value, bool is_signed,
                              uint32_t interval) {
    uint64_t ordered = attune_ordered(value, is_signed);
    attune_raise(&to->least[interval & 1], ~ordered);
    attune_raise(&to->greatest[interval & 1], ordered);
    /* Behind the loops: the verifier would multiply its many ways with theirs. The
     * mask tells it the bound. */
    uint32_t bucket = attune_bucket(value, is_signed) & (ATTUNE_HIST_BUCKETS - 1);
    __sync_fetch_and_add(&to->histogram[bucket], 1);
    __sync_fetch_and_add(&to->sum, value);
    __sync_fetch_and_add(&to->count, 1);
}

/* Gives a free place its key, unless another thread is quicker or there are as many
 * keys as there may be. Returns the place's key then; 0: it is still free. */
ATTUNE_INLINE uint64_t attune_take_place(uint64_t *place, uint64_t key, uint32_t *keys,
                                         uint32_t max_keys) {
    uint64_t there = 0;
    if (ATTUNE_LOOK(keys) >= max_keys)
        return 0;
    if (__sync_fetch_and_add(keys, 1) < max_keys) {
        there = __sync_val_compare_and_swap(place, 0, key);
        if (there == 0)
            return key;
    }
    __sync_fetch_and_add(keys, -1);
    return there;
}

/* The number of a key's place, which it takes if it has none; -1: there is no room
 * for it. keys is how many there are, mask the number of places - 1, and at(table, n)
 * place n, or NULL. */
ATTUNE_INLINE int32_t attune_find_place(void *table, uint32_t mask, uint64_t key, uint32_t *keys,
                                        uint32_t max_keys,
                                        struct attune_aggregate *(*at)(void *, uint32_t)) {
    uint64_t named = key != 0 ? key : 1;
    /* Fibonacci hashing: addresses differ in their middle bits. Of key 0 it is 0. */
    uint32_t number = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & mask;
    for (uint32_t step = 0; step < ATTUNE_PLACE_STEPS; step++) {
        if (number == 0 && key != 0)
            number = 1;
        struct attune_aggregate *place = at(table, number);
        if (!place)
            return -1;
        uint64_t there = ATTUNE_LOOK(&place->key);
        if (there == 0)
            there = attune_take_place(&place->key, named, keys, max_keys);
        if (there == named)
            return (int32_t)number;
        if (there == 0)
            return -1;
        number = (number + 1) & mask;
    }
    return -1;
}

#endif
