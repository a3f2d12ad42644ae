/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event path: no lock, no allocation, no system call but at a thread's
 * first hit. Plain events are inlined into the hot hooks, the rest is in
 * record.c. A measurement makes the thread busy, the real call never does:
 * that one may be unwound by cancellation, an exception or longjmp.
 *
 * Locked instructions, as in a mutex, wait for everything before them and let
 * nothing after them begin: there each instruction counts, and chains of
 * dependent loads count most. Hence a pointer that moves instead of an index,
 * and single tests that answer several questions.
 */
#ifndef DM_RECORD_H
#define DM_RECORD_H

#include "dmlib.h"

_Static_assert(offsetof(struct attune_point_control, sample_mask) == 4, "see dm_asked");

/* What a program can take of a call. Parameters are those that it began with. */
struct dm_call {
    uint64_t integers[6];  /* integer and address parameters, if ... */
    bool has_integers;     /* ... they are known */
    const uint64_t *reals; /* eight floating point ones; NULL: they are not known */
    uint64_t call_site;
    bool has_returned;
    bool has_real;     /* ... and real_returned is known */
    uint64_t returned; /* integer or address that it returned                 */
    uint64_t real_returned;
};

/* One hit of a point. */
struct dm_hit {
    unsigned point;
    uint32_t word;
    uint64_t value;
    uint64_t extra;
    uint64_t duration;          /* ticks, if the word asks for it: then what is measured */
    uint64_t time;              /* ticks at its end, if the word asks for the duration */
    bool due;                   /* its call was found to be one in some when it began */
    const struct dm_call *call; /* if the word asks for a program */
};

/* Writes a record and its continuations, all or none. Busy threads only. */
DM_HIDDEN void dm_write_followed(struct dm_thread *thread, const struct attune_record *record,
                                 uint32_t kinds, const uint64_t *words, unsigned count);

/* Takes whatever the control asks for. acquire is dm_thread_acquire or a
 * function around it. */
DM_HIDDEN void dm_measure(const struct dm_hit *hit, bool (*acquire)(struct dm_thread *));

/* Takes a call of a hook that has ended, by what its point asks for now. word is what it asked
 * for when the call began. */
DM_HIDDEN void dm_measure_ended(struct dm_hit *hit, uint32_t word);

/* Gives it to the points that share the hook. */
DM_HIDDEN void dm_share(const struct dm_hit *hit, uint32_t word);

/* Measures a hit that dm_hot left over after the real call; returns result, so
 * that a hook can end with it. */
DM_HIDDEN uint64_t dm_late(unsigned point, uint64_t value, uint64_t extra, uint64_t result);

/* dm_sum, for hooks in which another call does not matter. */
DM_HIDDEN bool dm_aggregated(unsigned point, const struct attune_point_control *control,
                             uint64_t value);

/* program.c: takes a hit as the control's program says. The thread is busy. */
DM_HIDDEN void dm_program_take(struct dm_thread *thread, const struct dm_hit *hit,
                               const struct attune_point_control *control);
/* table.c: adds to the aggregate of a key. */
DM_HIDDEN void dm_table_add(const struct attune_program *program, uint64_t key, uint64_t value,
                            bool is_signed);

DM_INLINE bool dm_admitted(const struct attune_point_control *control, uint64_t value) {
    return value >= control->min_value && value <= control->max_value;
}

/* What the hit is judged by and summed up with. */
DM_INLINE uint64_t dm_measured(const struct dm_hit *hit) {
    return hit->word & ATTUNE_CTL_DURATION ? hit->duration : hit->value;
}

DM_INLINE uint64_t dm_generation(void) {
    return __atomic_load_n(&dm_live.generation, __ATOMIC_RELAXED);
}

/* Between enter and leave the thread is busy: a signal handler's hooks find
 * another generation than the process's, and do not touch the ring. What was
 * loaded before enter may be from before such a handler. */
DM_INLINE void dm_enter(struct dm_thread *thread) {
    thread->generation = DM_BUSY;
    dm_compiler_barrier();
}

DM_INLINE void dm_leave(struct dm_thread *thread, uint64_t generation) {
    dm_compiler_barrier();
    thread->generation = generation;
}

/* Whether the thread can measure: it has a slot. */
DM_INLINE bool dm_has_slot(struct dm_thread *thread, bool (*acquire)(struct dm_thread *)) {
    return thread->generation == dm_generation() || acquire(thread);
}

/* Whether the thread is in a measurement, and not only because a signal handler left
 * that by longjmp. */
DM_INLINE bool dm_is_busy(struct dm_thread *thread) {
    return thread->generation == DM_BUSY && !dm_thread_recover(thread);
}

/* Number of the running interval, whose extremes a hit may raise. */
DM_INLINE uint32_t dm_interval(void) {
    return __atomic_load_n(&dm_parent.header->epoch, __ATOMIC_RELAXED);
}

/* attune_add() for this thread's own aggregate, without locked instructions. */
DM_INLINE void dm_aggregate(struct attune_aggregate *aggregate, uint64_t value, bool is_signed) {
    uint64_t ordered = attune_ordered(value, is_signed);
    uint32_t parity = dm_interval() & 1;
    uint64_t *least = &aggregate->least[parity], *greatest = &aggregate->greatest[parity];
    if (~ordered > *least)
        __atomic_store_n(least, ~ordered, __ATOMIC_RELAXED);
    if (ordered > *greatest)
        __atomic_store_n(greatest, ordered, __ATOMIC_RELAXED);
    uint32_t *counter = &aggregate->histogram[attune_bucket(value, is_signed)];
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&aggregate->sum, aggregate->sum + value, __ATOMIC_RELAXED);
    __atomic_store_n(&aggregate->count, aggregate->count + 1, __ATOMIC_RELEASE);
}

/* One call in mask + 1 is due, at uneven distances: where a program calls in a rhythm
 * of its own, even ones would meet the same call of it each time. Multiples of the golden
 * ratio are spread evenly over any rhythm. Each call of a thread makes one step. */
#define DM_STEP 0x9e3779b9u

DM_INLINE bool dm_is_due(uint32_t calls, uint32_t mask) {
    return (calls * ((uint64_t)mask + 1)) >> 32 == 0;
}

DM_INLINE bool dm_step(uint32_t *calls, uint32_t mask) {
    bool due = dm_is_due(*calls, mask);
    *calls += DM_STEP;
    return due;
}

/* Whether calls that are not due are passed by, whatever else the word says: before
 * the clock, values and conditions are looked at. Sums beside events need each call. */
DM_INLINE bool dm_passes_by(uint32_t word) {
    return (word & (ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE)) == ATTUNE_CTL_EVENT;
}

/* Whether a hit becomes a record. Where there are sums beside, only now it is known that
 * the hit counts, and it makes its step. */
DM_INLINE bool dm_delivers(const struct dm_hit *hit, struct attune_aggregate *sums, uint32_t mask) {
    if ((hit->word & ATTUNE_CTL_EVENT) == 0)
        return false;
    return (hit->word & ATTUNE_CTL_AGGREGATE) == 0 || dm_step(&sums->calls, mask);
}

/* Only where the thread has room for a record. */
DM_INLINE void dm_write(struct dm_thread *thread, unsigned point, unsigned flags, uint64_t time,
                        uint64_t value, uint64_t extra) {
    struct attune_record *record = thread->next;
    uint64_t what = point | (uint64_t)flags << 16; /* thread: 0 */
    thread->next = record + 1;
    record->time = time;
    __builtin_memcpy(&record->point, &what, sizeof(what));
    record->value = value;
    record->extra = extra;
    dm_count_own(&thread->slot->head);
}

/* The time; of several hits of one call the same, which the first one that needs it
 * reads. now is NULL, or 0 before it was read. */
DM_INLINE uint64_t dm_time(uint64_t *now) {
    if (now == NULL)
        return dm_ticks();
    if (*now == 0)
        *now = dm_ticks();
    return *now;
}

/* An event in a thread that has room for it, or false; stubs_x86_64.S has it in assembly. */
DM_INLINE bool dm_event(unsigned point, const struct attune_point_control *control, uint64_t value,
                        uint64_t extra, uint64_t *now) {
    struct dm_thread *thread = &dm_thread;
    uint64_t generation = dm_generation();
    if (dm_unlikely(thread->generation != generation))
        return false;
    if (dm_unlikely(!dm_admitted(control, value)))
        return true;
    dm_enter(thread);
    bool room = thread->next != thread->limit;
    if (dm_likely(room))
        dm_write(thread, point, 0, dm_time(now), value, extra);
    dm_leave(thread, generation);
    return room;
}

/* True: the call is not due, and makes its step. One that is due makes it where it is
 * measured. */
DM_INLINE bool dm_passed_by(unsigned point, uint32_t mask) {
    struct dm_thread *thread = &dm_thread;
    if (dm_unlikely(thread->generation != dm_generation()))
        return false;
    struct attune_aggregate *sums = &thread->slot->aggregates[point];
    if (dm_unlikely(dm_is_due(sums->calls, mask)))
        return false;
    sums->calls += DM_STEP;
    return true;
}

/* Like dm_event, for sums and nothing else; stubs_x86_64.S has it in assembly. */
DM_INLINE bool dm_sum(unsigned point, const struct attune_point_control *control, uint64_t value) {
    struct dm_thread *thread = &dm_thread;
    uint64_t generation = dm_generation();
    if (dm_unlikely(thread->generation != generation))
        return false;
    if (dm_unlikely(!dm_admitted(control, value)))
        return true;
    struct attune_aggregate *sums = &thread->slot->aggregates[point];
    __asm__("" : "+r"(sums)); /* one register, not its arithmetic again per field */
    dm_enter(thread);
    dm_aggregate(sums, value, false);
    dm_leave(thread, generation);
    return true;
}

/* Word and sample mask in one look. */
DM_INLINE uint64_t dm_asked(const struct attune_point_control *control) {
    uint64_t asked;
    __builtin_memcpy(&asked, control, sizeof(asked));
    return asked;
}

/* True: the hit is dealt with. False: nothing was done, it must take the warm
 * way or the full one. now is as in dm_time. */
DM_INLINE bool dm_hot(unsigned point, const struct attune_point_control *control, uint64_t asked,
                      uint64_t value, uint64_t extra, uint64_t *now) {
    if (dm_likely(asked == ATTUNE_CTL_EVENT))
        return dm_event(point, control, value, extra, now);
    const uint32_t more = DM_CTL_ATTEND | ATTUNE_CTL_SHARED | ATTUNE_CTL_DURATION; /* see calls.c */
    return (asked & more) == 0 && dm_passes_by((uint32_t)asked) &&
           dm_passed_by(point, (uint32_t)(asked >> 32));
}

/* The same where there was a call already, so that another does not matter. */
DM_INLINE bool dm_warm(unsigned point, const struct attune_point_control *control, uint64_t asked,
                       uint64_t value) {
    return (uint32_t)asked == ATTUNE_CTL_AGGREGATE && dm_aggregated(point, control, value);
}

#endif
