/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Room for a record in the ring, and its time. */
#ifndef ATTUNE_UPROBE_RECORD_H
#define ATTUNE_UPROBE_RECORD_H

#include "uprobe_hit.h"

/* How many records have one time at most. */
#define RECORDS_OF_A_TIME 16

/* The time of one of the last records in this tick of the kernel's clock, or the
 * time now. The clock takes 50 ns to read, its tick nothing. Writers that meet
 * here may give a record the time of the one behind it. */
INLINE u64 coarse_time(struct ring *ring) {
    u64 tick = bpf_jiffies64(), now;

    if (*(volatile u64 *)&ring->tick == tick && ring->records < RECORDS_OF_A_TIME) {
        ring->records++;
        return *(volatile u64 *)&ring->time;
    }
    now = bpf_ktime_get_ns();
    *(volatile u64 *)&ring->time = now;
    *(volatile u64 *)&ring->tick = tick;
    ring->records = 1;
    return now;
}

INLINE u64 time_of(struct hit *hit, struct ring *ring) {
    if (hit->now)
        return hit->now;
    return hit->watch->flags & WATCH_COARSE_TIME ? coarse_time(ring) : bpf_ktime_get_ns();
}

/* Counts a hit that is in no figure. The reader looks at watches when the sum has grown. */
INLINE void lose(struct hit *hit) {
    u32 zero = 0;
    struct ring *ring = bpf_map_lookup_elem(&record_ring, &zero);

    if (ring)
        __sync_fetch_and_add(&ring->lost, 1);
    __sync_fetch_and_add(&hit->watch->lost, 1);
}

/* Reserves room for a record and fills in all but its first word. */
INLINE struct uprobe_record *reserve(struct hit *hit, u32 length) {
    u32 zero = 0;
    struct ring *ring = bpf_map_lookup_elem(&record_ring, &zero);
    u8 *memory = bpf_map_lookup_elem(&ring_memory, &zero);
    struct uprobe_record *record;
    u64 position;

    if (!ring || !memory)
        return 0;
    if (!ring_reserve(ring, ring_size, length, &position)) {
        __sync_fetch_and_add(&hit->watch->lost, 1);
        return 0;
    }
    record = (struct uprobe_record *)(memory + (position & (ring_size - 1)));
    record->time = time_of(hit, ring);
    record->point = hit->plan->point;
    record->flags = hit->flags | (hit->watch->sample_mask ? RECORD_SAMPLED : 0);
    record->thread = hit->thread;
    record->value = hit->value;
    record->extra = hit->flags & RECORD_DURATION ? hit->own : 0;
    return record;
}

#endif
