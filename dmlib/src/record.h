/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event path, inlined into every hook: no call, no lock, no allocation.
 * A measurement is bracketed by the thread's guard, never the real call: that
 * one may be unwound by cancellation, an exception or longjmp.
 */
#ifndef DM_RECORD_H
#define DM_RECORD_H

#include "dmlib.h"

struct dm_sample {
    uint64_t value;
    uint64_t extra;
    uint64_t start; /* ticks; only if the word asks for the duration */
    uint64_t end;
};

DM_INLINE unsigned dm_bit_width(uint64_t value) {
    unsigned width = value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
    return width < ATTUNE_HIST_BUCKETS ? width : ATTUNE_HIST_BUCKETS - 1;
}

DM_INLINE void dm_aggregate(struct attune_aggregate *aggregate, uint64_t value) {
    uint32_t epoch = __atomic_load_n(&dm_live.mapping.header->epoch, __ATOMIC_RELAXED);
    bool fresh = aggregate->count == 0 || aggregate->epoch != epoch;
    if (fresh || value < aggregate->min)
        __atomic_store_n(&aggregate->min, value, __ATOMIC_RELAXED);
    if (fresh || value > aggregate->max)
        __atomic_store_n(&aggregate->max, value, __ATOMIC_RELAXED);
    if (fresh)
        __atomic_store_n(&aggregate->epoch, epoch, __ATOMIC_RELEASE);
    uint32_t *bucket = &aggregate->histogram[dm_bit_width(value)];
    __atomic_store_n(bucket, *bucket + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&aggregate->sum, aggregate->sum + value, __ATOMIC_RELAXED);
    __atomic_store_n(&aggregate->count, aggregate->count + 1, __ATOMIC_RELEASE);
}

DM_INLINE void dm_publish(struct dm_thread *thread, unsigned point, unsigned flags, uint64_t time,
                          uint64_t value, uint64_t extra) {
    uint64_t head = thread->head;
    if (dm_unlikely(head - thread->tail >= thread->capacity) && !dm_ring_room(thread))
        return;
    struct attune_record *record = &thread->ring[head & (thread->capacity - 1)];
    *record = (struct attune_record){
        .time = time != 0 ? time : dm_ticks(),
        .point = (uint16_t)point,
        .flags = (uint16_t)flags,
        .value = value,
        .extra = extra,
    };
    thread->head = head + 1;
    __atomic_store_n(&thread->slot->head, head + 1, __ATOMIC_RELEASE);
}

/* Is it this event's turn? Counts the events of this thread and point. */
DM_INLINE bool dm_sampled(struct attune_aggregate *aggregate, uint32_t mask) {
    uint32_t number = aggregate->calls;
    aggregate->calls = number + 1;
    return (number & mask) == 0;
}

DM_INLINE void dm_take(struct dm_thread *thread, unsigned point, uint32_t word, uint32_t mask,
                       const struct dm_sample *sample) {
    struct attune_aggregate *aggregate = &thread->slot->aggregates[point];
    bool timed = (word & ATTUNE_CTL_DURATION) != 0;
    if (word & ATTUNE_CTL_AGGREGATE)
        dm_aggregate(aggregate, timed ? sample->end - sample->start : sample->value);
    if ((word & ATTUNE_CTL_EVENT) == 0 || (mask != 0 && !dm_sampled(aggregate, mask)))
        return;
    unsigned flags = mask != 0 ? ATTUNE_RECORD_SAMPLED : 0;
    if (timed)
        dm_publish(thread, point, flags | ATTUNE_RECORD_DURATION, sample->end, sample->value,
                   sample->end - sample->start);
    else
        dm_publish(thread, point, flags, 0, sample->value, sample->extra);
}

/* Measures one hit. acquire is dm_thread_acquire or a wrapper of it. */
DM_INLINE void dm_measure(unsigned point, uint32_t word, const struct dm_sample *sample,
                          bool (*acquire)(struct dm_thread *)) {
    struct dm_thread *thread = &dm_thread;
    const struct attune_point_control *control = dm_control(point);
    if (sample->value < control->min_value || sample->value > control->max_value)
        return;
    uint64_t generation = __atomic_load_n(&dm_live.generation, __ATOMIC_RELAXED);
    if (dm_unlikely((thread->guard | (thread->generation ^ generation)) != 0)) {
        if (thread->guard != 0 && !dm_thread_recover(thread, dm_stack()))
            return;
        if (thread->generation != generation && !acquire(thread))
            return;
    }
    thread->guard = dm_stack();
    dm_compiler_barrier();
    dm_take(thread, point, word, control->sample_mask, sample);
    dm_compiler_barrier();
    thread->guard = 0;
}

#endif
