/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregates, samples, durations, and what the hot path could not decide. */
#include "record.h"

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

/* Nobody reads any of it before head moves. */
void dm_write_followed(struct dm_thread *thread, const struct attune_record *record, uint32_t kinds,
                       const uint64_t *words, unsigned count) {
    unsigned units = (count + ATTUNE_CONTINUATION_WORDS - 1) / ATTUNE_CONTINUATION_WORDS;
    uint64_t mask = dm_parent.ring_records - 1, head = thread->slot->head;
    if (!dm_ring_holds(thread, 1 + units))
        return;
    thread->limit = thread->next; /* what fits there has changed */
    struct attune_record *first = &thread->ring[head & mask];
    *first = *record;
    first->flags |= (uint16_t)(units << ATTUNE_RECORD_FOLLOW_SHIFT);
    for (unsigned i = 0; i < units; i++, kinds = 0) {
        uint64_t word[ATTUNE_CONTINUATION_WORDS] = {0, 0, 0};
        for (unsigned j = 0;
             j < ATTUNE_CONTINUATION_WORDS && i * ATTUNE_CONTINUATION_WORDS + j < count; j++)
            word[j] = words[i * ATTUNE_CONTINUATION_WORDS + j];
        struct attune_continuation unit = {
            .first = word[0],
            .point = ATTUNE_CONTINUATION_POINT,
            .flags = ATTUNE_RECORD_CONTINUATION,
            .kinds = kinds,
            .second = word[1],
            .third = word[2],
        };
        __builtin_memcpy(&thread->ring[(head + 1 + i) & mask], &unit, sizeof(unit));
    }
    __atomic_store_n(&thread->slot->head, head + 1 + units, __ATOMIC_RELEASE);
}

static void take(struct dm_thread *thread, const struct dm_hit *hit, uint32_t mask) {
    struct attune_aggregate *sums = &thread->slot->aggregates[hit->point];
    if (hit->word & ATTUNE_CTL_AGGREGATE)
        dm_aggregate(sums, dm_measured(hit), false);
    if (!dm_delivers(hit, sums, mask))
        return;
    publish(thread, hit, mask != 0 ? ATTUNE_RECORD_SAMPLED : 0);
}

/* Sums are exact however many threads there are: those without a slot share one. */
static void add_to_common(unsigned point, uint64_t value) {
    uint32_t *used = &dm_parent.header->common_used;
    if (__atomic_load_n(used, __ATOMIC_RELAXED) == 0) /* a store takes the line from the others */
        __atomic_store_n(used, 1, __ATOMIC_RELAXED);
    attune_add(&dm_parent.slots[dm_parent.slot_count].aggregates[point], value, false,
               dm_interval());
}

static DM_COLD void measure_without_slot(struct dm_thread *thread, const struct dm_hit *hit,
                                         uint32_t mask) {
    uint32_t word = hit->word;
    if (dm_generation() == 0)
        return;
    if ((word & (ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_PROGRAM)) == ATTUNE_CTL_AGGREGATE) {
        add_to_common(hit->point, dm_measured(hit));
        word &= ~ATTUNE_CTL_AGGREGATE;
    }
    if ((word & DM_CTL_MEASURE) != 0)
        dm_lose(thread, word, mask);
}

void dm_measure(const struct dm_hit *hit, bool (*acquire)(struct dm_thread *)) {
    struct dm_thread *thread = &dm_thread;
    const struct attune_point_control *control = dm_control(hit->point);
    bool admitted = dm_admitted(control, dm_measured(hit));
    bool steps = dm_unlikely(control->sample_mask != 0) && dm_passes_by(hit->word) && !hit->due;
    if (!admitted && !steps)
        return;
    if (dm_is_busy(thread)) {
        if (admitted)
            dm_lose(thread, hit->word, control->sample_mask);
        return;
    }
    if (!dm_has_slot(thread, acquire)) {
        if (admitted)
            measure_without_slot(thread, hit, control->sample_mask);
        return;
    }
    uint64_t generation = thread->generation;
    dm_enter(thread);
    if (steps && !dm_step(&thread->slot->aggregates[hit->point].calls, control->sample_mask))
        admitted = false;
    if (admitted && (hit->word & ATTUNE_CTL_PROGRAM))
        dm_program_take(thread, hit, control);
    else if (admitted)
        take(thread, hit, control->sample_mask);
    dm_leave(thread, generation);
}

/* Another point may have come into the place of the one that the call began with. What it
 * needs to know from before the call it gets with the next one. */
void dm_measure_ended(struct dm_hit *hit, uint32_t word) {
    hit->word = dm_word(hit->point);
    bool timed = (word & DM_CTL_TIMES) != 0 || (hit->word & ATTUNE_CTL_DURATION) == 0;
    bool captured = hit->call != NULL || (hit->word & ATTUNE_CTL_PROGRAM) == 0;
    if (timed && captured && (hit->word & DM_CTL_MEASURE) != 0)
        dm_measure(hit, dm_thread_acquire);
}

void dm_share(const struct dm_hit *hit, uint32_t word) {
    uint32_t sharers = __atomic_load_n(&dm_control(hit->point)->parameter, __ATOMIC_RELAXED);
    for (; sharers != 0; sharers &= sharers - 1) {
        struct dm_hit shared = *hit;
        shared.point = ATTUNE_SHARER_FIRST + (unsigned)__builtin_ctz(sharers);
        dm_measure_ended(&shared, word);
    }
}

uint64_t dm_late(unsigned point, uint64_t value, uint64_t extra, uint64_t result) {
    struct dm_hit hit = {.point = point, .value = value, .extra = extra};
    dm_measure_ended(&hit, 0);
    return result;
}

bool dm_aggregated(unsigned point, const struct attune_point_control *control, uint64_t value) {
    return dm_sum(point, control, value);
}
