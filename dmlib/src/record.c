/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregates, samples, durations, and what the hot path could not decide. */
#include "record.h"

static unsigned bit_width(uint64_t value) {
    unsigned width = value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
    return width < ATTUNE_HIST_BUCKETS ? width : ATTUNE_HIST_BUCKETS - 1;
}

DM_INLINE void aggregate(struct attune_aggregate *aggregate, uint64_t value) {
    uint32_t epoch = __atomic_load_n(&dm_live.mapping.header->epoch, __ATOMIC_RELAXED);
    bool fresh = aggregate->count == 0 || aggregate->epoch != epoch;
    if (fresh || value < aggregate->min)
        __atomic_store_n(&aggregate->min, value, __ATOMIC_RELAXED);
    if (fresh || value > aggregate->max)
        __atomic_store_n(&aggregate->max, value, __ATOMIC_RELAXED);
    if (fresh)
        __atomic_store_n(&aggregate->epoch, epoch, __ATOMIC_RELEASE);
    uint32_t *bucket = &aggregate->histogram[bit_width(value)];
    __atomic_store_n(bucket, *bucket + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&aggregate->sum, aggregate->sum + value, __ATOMIC_RELAXED);
    __atomic_store_n(&aggregate->count, aggregate->count + 1, __ATOMIC_RELEASE);
}

/* ---- the full way ------------------------------------------------------ */

static void publish(struct dm_thread *thread, const struct dm_hit *hit, unsigned flags) {
    if (thread->next == thread->limit && !dm_ring_room(thread))
        return;
    if (hit->word & ATTUNE_CTL_DURATION)
        dm_write(thread, hit->point, flags | ATTUNE_RECORD_DURATION, hit->time, hit->value,
                 hit->duration);
    else
        dm_write(thread, hit->point, flags, dm_ticks(), hit->value, hit->extra);
}

/* Is it this event's turn? Counts the events of this thread and point. */
static bool sampled(struct attune_aggregate *sums, uint32_t mask) {
    return (sums->calls++ & mask) == 0;
}

static void take(struct dm_thread *thread, const struct dm_hit *hit, uint32_t mask) {
    struct attune_aggregate *sums = &thread->slot->aggregates[hit->point];
    if (hit->word & ATTUNE_CTL_AGGREGATE)
        aggregate(sums, hit->word & ATTUNE_CTL_DURATION ? hit->duration : hit->value);
    if ((hit->word & ATTUNE_CTL_EVENT) == 0 || (mask != 0 && !sampled(sums, mask)))
        return;
    publish(thread, hit, mask != 0 ? ATTUNE_RECORD_SAMPLED : 0);
}

void dm_measure(const struct dm_hit *hit, bool (*acquire)(struct dm_thread *)) {
    struct dm_thread *thread = &dm_thread;
    const struct attune_point_control *control = dm_control(hit->point);
    if (!dm_admitted(control, hit->value))
        return;
    if (!dm_ready(thread, acquire))
        return;
    uint64_t generation = thread->generation;
    dm_enter(thread);
    take(thread, hit, control->sample_mask);
    dm_leave(thread, generation);
}

uint64_t dm_late(unsigned point, uint64_t value, uint64_t extra, uint64_t result) {
    struct dm_hit hit = {.point = point, .word = dm_word(point), .value = value, .extra = extra};
    /* What came up during the call begins with the next. */
    hit.word &= ~(DM_CTL_ATTEND | ATTUNE_CTL_DURATION);
    if (hit.word & DM_CTL_MEASURE)
        dm_measure(&hit, dm_thread_acquire);
    return result;
}

bool dm_aggregated(unsigned point, const struct attune_point_control *control, uint64_t value) {
    struct dm_thread *thread = &dm_thread;
    uint64_t generation = dm_generation();
    if (dm_unlikely(thread->generation != generation))
        return false;
    if (dm_unlikely(!dm_admitted(control, value)))
        return true;
    struct attune_aggregate *sums = &thread->slot->aggregates[point];
    __asm__("" : "+r"(sums)); /* one register, not its arithmetic again per field */
    dm_enter(thread);
    aggregate(sums, value);
    dm_leave(thread, generation);
    return true;
}
