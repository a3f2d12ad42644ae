/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Sums of values: count, sum, least, greatest, histogram. They lie in memory
 * that user space maps, so that reading them costs no system call. Nothing
 * here calls the kernel; the unit test compiles it natively.
 */
#ifndef ATTUNE_AGGREGATE_H
#define ATTUNE_AGGREGATE_H

#include "attune_bpf.h"

/* As struct attune_aggregate of DMLib: bucket b counts values of bit width b
 * (bucket 0: zero, and all negative ones), the last bucket everything above. */
#define HISTOGRAM_BUCKETS 64

#define SIGN_BIT (1ull << 63)

struct extremes {
    u64 min; /* (user) all ones at the start of an interval */
    u64 max; /* (user) 0 at the start of an interval        */
};

/* Changed atomically by the programs; all but the extremes only ever grows. Of
 * these one pair belongs to the running interval, the other to the one before:
 * user space resets that one before it lets the next interval begin, so that
 * no reset can race with a hit. Extremes of signed values are kept with the
 * sign bit flipped, which puts them in the order of unsigned ones. */
struct aggregate {
    u64 count;
    u64 sum;
    struct extremes extremes[2];
    u64 histogram[HISTOGRAM_BUCKETS];
};

INLINE u32 histogram_bucket(u64 value) {
    u32 width = 0;

    if (value >> 32) {
        width += 32;
        value >>= 32;
    }
    if (value >> 16) {
        width += 16;
        value >>= 16;
    }
    if (value >> 8) {
        width += 8;
        value >>= 8;
    }
    if (value >> 4) {
        width += 4;
        value >>= 4;
    }
    if (value >> 2) {
        width += 2;
        value >>= 2;
    }
    if (value >> 1) {
        width += 1;
        value >>= 1;
    }
    width += value;
    return width < HISTOGRAM_BUCKETS ? width : HISTOGRAM_BUCKETS - 1;
}

/* Other CPUs may change the word at the same time, but only towards the goal;
 * a try fails only if another succeeded. The bound is for the verifier. */
#define EXTREME_TRIES 16

INLINE void lower(u64 *word, u64 value) {
    for (int i = 0; i < EXTREME_TRIES; i++) {
        u64 seen = *(volatile u64 *)word;

        if (value >= seen || __sync_val_compare_and_swap(word, seen, value) == seen)
            return;
    }
}

INLINE void raise(u64 *word, u64 value) {
    for (int i = 0; i < EXTREME_TRIES; i++) {
        u64 seen = *(volatile u64 *)word;

        if (value <= seen || __sync_val_compare_and_swap(word, seen, value) == seen)
            return;
    }
}

/* Adds all but the count, of which the caller has made sure. */
INLINE void aggregate_add(struct aggregate *aggregate, u64 value, bool is_signed, u32 interval) {
    struct extremes *extremes = &aggregate->extremes[interval & 1];
    u64 ordered = is_signed ? value ^ SIGN_BIT : value;

    __sync_fetch_and_add(&aggregate->sum, value);
    lower(&extremes->min, ordered);
    raise(&extremes->max, ordered);
    /* Last: its many ways would multiply with those of the loops above for the
     * verifier. The mask tells it what histogram_bucket() has ensured. */
    u32 bucket = is_signed && (s64)value < 0 ? 0 : histogram_bucket(value);

    __sync_fetch_and_add(&aggregate->histogram[bucket & (HISTOGRAM_BUCKETS - 1)], 1);
}

/* The same, as a function of its own to the verifier. */
NOINLINE int aggregate_any(struct aggregate *aggregate, u64 value, u32 is_signed, u32 interval) {
    if (aggregate)
        aggregate_add(aggregate, value, is_signed, interval);
    return 0;
}

#endif
