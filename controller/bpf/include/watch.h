/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * One watched point of one process: what to take and what was seen. Nothing
 * here calls the kernel; the unit test compiles it natively.
 */
#ifndef ATTUNE_WATCH_H
#define ATTUNE_WATCH_H

#include "attune_bpf.h"

#include "attune/aggregate.h"

/* Deliver every hit, or one in sample_mask + 1, as a record, and count them. Else
 * add to the aggregate. */
#define WATCH_EVENT (1u << 0)
/* Some capture is of these, which cost more than others. */
#define WATCH_CALL_SITE (1u << 2)
/* Records may have the time of one before them; see coarse_time(). */
#define WATCH_COARSE_TIME (1u << 4)

/* (user) is written before the process is listed, the rest by the programs,
 * atomically; all of it only ever grows. */
struct watch {
    u32 flags;       /* (user) WATCH_*                                         */
    u32 sample_mask; /* (user) 2^k - 1                                         */
    u32 process;     /* (user) in the controller's pid namespace; 0: nobody    */
    u32 point;       /* (user)                                                 */
    u64 start_from;  /* (user) the process started, in ns since boot, at or    */
    u64 start_to;    /* (user) after the first and before the second: that of
                      * one that was given its pid later lies beyond           */
    u64 min_value;   /* (user) hits with min_value <= value <= max_value count */
    u64 max_value;   /* (user)                                                 */
    u32 program;     /* (user) number of the program of captures + 1; 0: none  */
    u32 reserve;     /* (user) bytes of a record at most                       */
    u32 keys;        /* that have an aggregate of their own                    */
    u32 era;         /* (user) no other watch has or had it                    */
    u64 lost;        /* records that found the ring full, and calls of which   */
                     /* the kernel did not tell both ends                      */
    u64 unreadable;  /* hits whose value or key could not be read              */
    struct attune_aggregate sums;
};

/* Watches are found by a hash of process and point; see find_watch(). */
#define WATCH_BUCKETS 4096u

INLINE u32 watch_bucket(u32 process, u32 point) {
    /* Knuth's multiplicative hash: the upper bits depend on all others. */
    return (process * 2654435761u ^ point * 2246822519u) >> 20;
}

INLINE bool watch_wants(const struct watch *watch, u64 value) {
    return value >= watch->min_value && value <= watch->max_value;
}

/* Counts a hit; returns how many there were before it. */
INLINE u64 watch_count(struct watch *watch) { return __sync_fetch_and_add(&watch->sums.count, 1); }

INLINE bool watch_delivers(const struct watch *watch, u64 before) {
    return (watch->flags & WATCH_EVENT) && (before & watch->sample_mask) == 0;
}

#endif
