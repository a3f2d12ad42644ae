/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions that are patched at entry and exits: each begins on the
 * thread's stack of open calls and is found there when it ends, by the address
 * of its return address, which is the same at the entry, at every return and at
 * every jump to another function in tail position.
 *
 * Nothing on the program's own stack is touched, so that exceptions, longjmp
 * and backtraces find it as it is. Calls that were left that way stay open
 * until an outer one ends, or room is needed. So do calls that end while their
 * point is off. A call ends only in the era of its point in which it began.
 */
#include "calls.h"

/* The number of open calls; memory that others can write is not trusted. */
static uint32_t depth_of(const struct attune_slot *slot) {
    return slot->open <= ATTUNE_OPEN_CALLS ? slot->open : 0;
}

/* Keeps the calls from `from` on that can still end when one at `stack` begins
 * or ends: the stack grows downwards, what was below is gone. A signal handler
 * or coroutine with a stack of its own, at higher addresses, may so lose what is
 * under it: a call whose end is not measured. */
static uint32_t drop_left(struct attune_slot *slot, uint32_t from, uint32_t depth, uint64_t stack) {
    uint32_t kept = from;
    for (uint32_t i = from; i < depth; i++)
        if (slot->calls[i].stack > stack)
            slot->calls[kept++] = slot->calls[i];
    return kept;
}

static bool is_call(const struct attune_open_call *call, const struct dm_hit *hit, uint64_t stack) {
    return call->stack == stack && call->point == hit->point;
}

/* Where those of the topmost calls begin that have this stack: of other points of the function,
 * for which the call that begins or ends is the same one. */
static uint32_t first_at(const struct attune_slot *slot, uint32_t depth, uint64_t stack) {
    while (depth > 0 && slot->calls[depth - 1].stack == stack)
        depth--;
    return depth;
}

static uint32_t move_down(struct attune_slot *slot, uint32_t to, uint32_t from, uint32_t depth) {
    while (from < depth)
        slot->calls[to++] = slot->calls[from++];
    return to;
}

/* What was left by longjmp or an exception is called again: the end of this call would be
 * taken for the end of one that was left. */
static uint32_t forget(struct attune_slot *slot, uint32_t from, uint32_t depth,
                       const struct dm_hit *hit, uint64_t stack) {
    uint32_t kept = from;
    for (uint32_t i = from; i < depth; i++)
        if (!is_call(&slot->calls[i], hit, stack))
            slot->calls[kept++] = slot->calls[i];
    return kept;
}

static uint32_t make_room(struct attune_slot *slot, uint32_t depth, uint64_t stack) {
    uint32_t first = first_at(slot, depth, stack);
    return move_down(slot, drop_left(slot, 0, first, stack), first, depth);
}

static uint32_t era_of(unsigned point) {
    return __atomic_load_n(&dm_control(point)->era, __ATOMIC_RELAXED);
}

static void open_call(struct attune_slot *slot, const struct dm_hit *hit, uint64_t stack,
                      uint64_t *now) {
    uint32_t depth = depth_of(slot); /* what lies deeper is not found before this one */
    depth = forget(slot, first_at(slot, depth, stack), depth, hit, stack);
    if (dm_unlikely(depth == ATTUNE_OPEN_CALLS))
        depth = make_room(slot, depth, stack);
    if (dm_unlikely(depth == ATTUNE_OPEN_CALLS)) {
        dm_count_own(&slot->lost);
        return;
    }
    struct attune_open_call *call = &slot->calls[depth];
    call->stack = stack;
    call->point = hit->point;
    call->value = hit->value;
    call->extra = hit->extra;
    call->era = era_of(hit->point);
    slot->open = depth + 1;
    call->begun = dm_time(now);
}

/* A call that is not due ends without having begun. */
static void pass_call_by(struct attune_slot *slot, const struct dm_hit *hit, uint64_t stack) {
    slot->open = forget(slot, 0, depth_of(slot), hit, stack);
}

/* False: the beginning of the call that ends was not seen. An open call of an earlier era is
 * another one, which ended while the point was off. */
static bool close_call(struct attune_slot *slot, struct dm_hit *hit, uint64_t stack) {
    uint32_t depth = depth_of(slot), era = era_of(hit->point);
    for (uint32_t i = depth; i-- > 0;) {
        const struct attune_open_call *call = &slot->calls[i];
        if (!is_call(call, hit, stack))
            continue;
        hit->time = dm_ticks();
        hit->value = call->value;
        hit->extra = call->extra;
        hit->duration = hit->time - call->begun;
        bool same_era = call->era == era;
        slot->open = i + 1 == depth ? i : drop_left(slot, i, depth, stack);
        return same_era;
    }
    return false;
}

void dm_call_begins(const struct dm_hit *hit, uint64_t stack, uint64_t *now,
                    bool (*acquire)(struct dm_thread *)) {
    struct dm_thread *thread = &dm_thread;
    if (dm_is_busy(thread) || !dm_has_slot(thread, acquire)) {
        dm_lose(thread, hit->word, dm_control(hit->point)->sample_mask);
        return;
    }
    uint64_t generation = thread->generation;
    dm_enter(thread);
    if (!dm_passes_by(hit->word) ||
        dm_step(&thread->slot->aggregates[hit->point].calls, dm_control(hit->point)->sample_mask))
        open_call(thread->slot, hit, stack, now);
    else
        pass_call_by(thread->slot, hit, stack);
    dm_leave(thread, generation);
}

bool dm_call_ends(struct dm_hit *hit, uint64_t stack) {
    struct dm_thread *thread = &dm_thread;
    uint64_t generation = dm_generation();
    if (dm_unlikely(thread->generation != generation))
        return false;
    dm_enter(thread);
    bool begun = close_call(thread->slot, hit, stack);
    dm_leave(thread, generation);
    return begun;
}
