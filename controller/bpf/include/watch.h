/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * One watched point of one process: what to take and what was seen. It lies
 * in memory that user space maps, so that reading it costs no system call.
 * Nothing here calls the kernel; the unit test compiles it natively.
 */
#ifndef ATTUNE_WATCH_H
#define ATTUNE_WATCH_H

#include "attune_bpf.h"

/* Deliver every hit, or one in sample_mask + 1, as a record. */
#define WATCH_EVENT (1u << 0)

/* As struct attune_aggregate of DMLib: bucket b counts values of bit width b
 * (bucket 0: zero), the last bucket everything above. */
#define HISTOGRAM_BUCKETS 64

struct extremes {
    u64 min; /* (user) all ones at the start of an interval */
    u64 max; /* (user) 0 at the start of an interval        */
};

/* (user) is written before the process is listed, the rest by the programs,
 * atomically; all of it only ever grows. Of the two extremes one belongs to
 * the running interval, the other to the one before: user space resets that
 * one before it lets the next interval begin, so that no reset can race with
 * a hit. */
struct watch {
    u32 flags;       /* (user) WATCH_*                                        */
    u32 sample_mask; /* (user) 2^k - 1                                        */
    u64 min_value;   /* (user) hits with min_value <= value <= max_value count */
    u64 max_value;   /* (user)                                                */
    u64 count;
    u64 sum;
    u64 lost; /* records that found the ring full                      */
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

INLINE bool watch_wants(const struct watch *watch, u64 value) {
    return value >= watch->min_value && value <= watch->max_value;
}

/* Other CPUs may change the word at the same time, but only towards the goal;
 * a try fails only if another succeeded. The bound is for the verifier. */
#define EXTREME_TRIES 32

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

/* Takes a hit; returns how many there were before it. */
INLINE u64 watch_take(struct watch *watch, u64 value, u32 interval) {
    struct extremes *extremes = &watch->extremes[interval & 1];
    u64 before = __sync_fetch_and_add(&watch->count, 1);

    __sync_fetch_and_add(&watch->sum, value);
    lower(&extremes->min, value);
    raise(&extremes->max, value);
    /* The mask tells the verifier what histogram_bucket() has ensured. */
    __sync_fetch_and_add(&watch->histogram[histogram_bucket(value) & (HISTOGRAM_BUCKETS - 1)], 1);
    return before;
}

INLINE bool watch_delivers(const struct watch *watch, u64 before) {
    return (watch->flags & WATCH_EVENT) && (before & watch->sample_mask) == 0;
}

#endif
