/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a forked child comes under control. It may put itself under a seccomp filter
 * at any time, and a filter that does not list a system call of ours kills it: so it
 * makes none before the controller has looked at its filters from outside
 * (dmlib_abi.h, ATTUNE_CHILD_*). Nor does it read the clock, which seccomp's strict mode
 * takes away. What the controller has seen holds for as long as the
 * child does nothing else: the child asks in one hook, goes on, and waits in a later
 * one, busy and for a moment only, when the controller pays attention.
 */
#include "dmlib.h"

/* Most children of fork call exec or exit soon: only one that stays is worth
 * the controller's look. Until then it runs as if nobody watched. Two beats lie a whole
 * interval of the controller's apart. */
#define CHILD_CALLS 1000
#define CHILD_BEATS 2

/* A child that so many calls pass without a beat has no controller any more. They take
 * the long way until then, 20 ns each: 10 s together, in which a controller that lives
 * had its turn. */
#define VAIN_CALLS 500000000

#ifndef CHILD_WAIT_MILLISECONDS
#define CHILD_WAIT_MILLISECONDS 2
#endif
#define WAIT_TICKS (CHILD_WAIT_MILLISECONDS * DM_MILLISECOND)

#ifndef CHILD_GATE_MILLISECONDS
#define CHILD_GATE_MILLISECONDS 20
#endif

enum answer { LATER, MAY, MAY_NOT };

/* Of dm_live.child_registers. */
enum { REGISTERS_NOT, REGISTERS, SETTLED };

bool dm_child_claim(uint32_t *before) {
    *before = __atomic_load_n(&dm_live.child_registers, __ATOMIC_ACQUIRE);
    return *before != REGISTERS &&
           __atomic_compare_exchange_n(&dm_live.child_registers, before, REGISTERS, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void dm_child_settle(void) {
    __atomic_store_n(&dm_live.child_registers, SETTLED, __ATOMIC_RELEASE);
}

void dm_child_disclaim(uint32_t before) {
    __atomic_store_n(&dm_live.child_registers, before, __ATOMIC_RELEASE);
}

static uint64_t said(uint32_t state, int32_t child) {
    return state | (uint64_t)(uint32_t)child << 32;
}

static uint64_t last_said(void) {
    return __atomic_load_n(&dm_parent.header->child, __ATOMIC_ACQUIRE);
}

static bool say(uint64_t last, uint64_t next) {
    return __atomic_compare_exchange_n(&dm_parent.header->child, &last, next, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Of one wait. Processors differ by 10 in how long a pause takes. */
static uint64_t pauses = 1;

static uint64_t ticks_of_pauses(unsigned count) {
    uint64_t start = dm_ticks();
    for (unsigned i = 0; i < count; i++)
        dm_pause();
    return dm_ticks() - start;
}

/* The least of some is one that nothing interrupted. */
void dm_child_prepare(void) {
    enum { TRIES = 4, COUNT = 8 };
    uint64_t least = ticks_of_pauses(COUNT);
    for (unsigned i = 1; i < TRIES; i++) {
        uint64_t ticks = ticks_of_pauses(COUNT);
        least = ticks < least ? ticks : least;
    }
    pauses = WAIT_TICKS * COUNT / (least + 1) + 1;
}

static enum answer wait_for_answer(int32_t self) {
    uint64_t waits = said(ATTUNE_CHILD_WAITS, self), none = said(ATTUNE_CHILD_NONE, 0);
    for (uint64_t left = pauses; last_said() == waits && left > 0; left--)
        dm_pause();
    if (say(waits, none))
        return LATER; /* nobody looked */
    if (say(said(ATTUNE_CHILD_MAY, self), none))
        return MAY;
    return say(said(ATTUNE_CHILD_MAY_NOT, self), none) ? MAY_NOT : LATER;
}

static enum answer ask(int32_t self) {
    uint64_t now = last_said();
    if (now == said(ATTUNE_CHILD_NONE, 0))
        say(now, said(ATTUNE_CHILD_ASKS, self));
    else if (now == said(ATTUNE_CHILD_ATTENDED, self) && say(now, said(ATTUNE_CHILD_WAITS, self)))
        return wait_for_answer(self);
    return LATER;
}

/* A thread whom the C library takes for another one runs in its parent's memory,
 * after vfork, and must not register in the parent's place. */
static enum answer ask_as_thread(void) {
    int32_t self = dm_tid();
    enum answer answer = ask(self);
    if (answer == MAY && dm_syscall(SYS_gettid, 0) != self)
        return LATER;
    return answer;
}

static bool child_register(void) {
    struct dm_mapping mapping;
    return dm_gate_register(ATTUNE_HELLO_FORKED, CHILD_GATE_MILLISECONDS, &mapping) &&
           dm_live_replace(&mapping);
}

/* A handler that leaves by longjmp would leave descriptors open, and the child for ever about
 * to register. */
static void register_undisturbed(void) {
    uint64_t before;
    bool held = dm_hold_signals(&before);
    if (!held || !child_register()) {
        dm_go_inert();
        dm_leave_parent();
    }
    dm_child_settle();
    if (held)
        dm_release_signals(&before);
}

static void come_under_control(void) {
    switch (ask_as_thread()) {
    case MAY:
        register_undisturbed();
        break;
    case MAY_NOT: /* without a system call, also to unmap what is its parent's */
        dm_go_inert();
        dm_child_settle();
        break;
    case LATER:
        dm_child_disclaim(REGISTERS_NOT);
    }
}

/* Several threads may do this at once, of which one's beat is lost. */
static void note_beat(uint32_t calls) {
    uint32_t beat = __atomic_load_n(&dm_parent.header->beat, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&dm_live.child_beat, beat, __ATOMIC_RELAXED) == beat)
        return;
    __atomic_add_fetch(&dm_live.child_beats, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&dm_live.child_calls_at_beat, calls, __ATOMIC_RELAXED);
}

void dm_child_hook(void) {
    uint32_t calls = __atomic_add_fetch(&dm_live.child_calls, 1, __ATOMIC_RELAXED);
    if (calls == 1)
        __atomic_add_fetch(&dm_parent.header->fork_count, 1, __ATOMIC_RELAXED);
    note_beat(calls); /* the first one is no beat of this life */
    uint32_t beats = __atomic_load_n(&dm_live.child_beats, __ATOMIC_RELAXED);
    if (calls < CHILD_CALLS && beats <= CHILD_BEATS)
        return;
    uint32_t unclaimed = REGISTERS_NOT;
    if (!__atomic_compare_exchange_n(&dm_live.child_registers, &unclaimed, REGISTERS, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    uint32_t at_beat = __atomic_load_n(&dm_live.child_calls_at_beat, __ATOMIC_RELAXED);
    bool vain = (int32_t)(calls - at_beat) > VAIN_CALLS;
    if (vain || __atomic_load_n(&dm_parent.header->detached, __ATOMIC_RELAXED) != 0) {
        dm_go_inert();
        dm_child_settle();
    } else {
        come_under_control();
    }
}
