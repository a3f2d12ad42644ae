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

/* Of dm_live.child_registers. Nothing is claimed while the child asks: a handler may leave it
 * there by longjmp, its thread for ever, and what it has said the controller takes back. */
enum { REGISTERS_NOT, REGISTERS, SETTLED };

static bool pass(uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&dm_live.child_registers, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

bool dm_child_claim(uint32_t *before) {
    *before = __atomic_load_n(&dm_live.child_registers, __ATOMIC_ACQUIRE);
    return *before != REGISTERS && pass(*before, REGISTERS);
}

void dm_child_settle(void) {
    __atomic_store_n(&dm_live.child_registers, SETTLED, __ATOMIC_RELEASE);
}

void dm_child_disclaim(uint32_t before) {
    __atomic_store_n(&dm_live.child_registers, before, __ATOMIC_RELEASE);
}

/* Without a system call, also to unmap what is its parent's. If a handler leaves this in the
 * middle the next hook goes on. */
static void give_up(void) {
    if (pass(REGISTERS_NOT, SETTLED))
        dm_go_inert();
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

/* An answer stays there until the child has done what it says: no other thread is
 * answered before. */
static enum answer wait_for_answer(int32_t self) {
    uint64_t waits = said(ATTUNE_CHILD_WAITS, self);
    for (uint64_t left = pauses; last_said() == waits && left > 0; left--)
        dm_pause();
    if (say(waits, said(ATTUNE_CHILD_NONE, 0)))
        return LATER; /* nobody looked */
    uint64_t answer = last_said();
    if (answer == said(ATTUNE_CHILD_MAY, self))
        return MAY;
    return answer == said(ATTUNE_CHILD_MAY_NOT, self) ? MAY_NOT : LATER;
}

/* An answer to a wait that a handler has left is for nobody: the thread has done something
 * else since. */
static enum answer ask(int32_t self) {
    uint64_t now = last_said();
    if (now == said(ATTUNE_CHILD_NONE, 0))
        say(now, said(ATTUNE_CHILD_ASKS, self));
    else if (now == said(ATTUNE_CHILD_ATTENDED, self) && say(now, said(ATTUNE_CHILD_WAITS, self)))
        return wait_for_answer(self);
    return LATER;
}

static bool fetch(uint32_t answer, int32_t self) {
    return say(said(answer, self), said(ATTUNE_CHILD_NONE, 0));
}

static bool child_register(void) {
    struct dm_mapping mapping;
    return dm_gate_register(ATTUNE_HELLO_FORKED, CHILD_GATE_MILLISECONDS, &mapping) &&
           dm_live_replace(&mapping);
}

static void register_or_not(bool may) {
    if (may && child_register())
        return;
    dm_go_inert();
    dm_leave_parent();
}

/* A handler that leaves by longjmp would leave descriptors open, and the child for ever about
 * to register. */
static void register_undisturbed(int32_t self) {
    uint64_t before;
    bool held = dm_hold_signals(&before);
    bool claimed = pass(REGISTERS_NOT, REGISTERS);
    if (!fetch(ATTUNE_CHILD_MAY, self) && claimed) {
        dm_child_disclaim(REGISTERS_NOT);
    } else if (claimed) {
        register_or_not(held);
        dm_child_settle();
    }
    if (held)
        dm_release_signals(&before);
}

/* A thread whom the C library takes for another one runs in its parent's memory,
 * after vfork, and must not register in the parent's place. */
static void come_under_control(void) {
    int32_t self = dm_tid();
    switch (ask(self)) {
    case MAY:
        if (dm_syscall(SYS_gettid, 0) == self)
            register_undisturbed(self);
        else
            fetch(ATTUNE_CHILD_MAY, self);
        break;
    case MAY_NOT:
        give_up();
        fetch(ATTUNE_CHILD_MAY_NOT, self);
        break;
    case LATER:
        break;
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
    note_beat(calls); /* the first one is no beat of this life */
    uint32_t beats = __atomic_load_n(&dm_live.child_beats, __ATOMIC_RELAXED);
    if (calls < CHILD_CALLS && beats <= CHILD_BEATS)
        return;
    uint32_t state = __atomic_load_n(&dm_live.child_registers, __ATOMIC_ACQUIRE);
    if (state == SETTLED && __atomic_load_n(&dm_live.delta, __ATOMIC_RELAXED) == 0)
        dm_go_inert();
    if (state != REGISTERS_NOT)
        return;
    uint32_t at_beat = __atomic_load_n(&dm_live.child_calls_at_beat, __ATOMIC_RELAXED);
    bool vain = (int32_t)(calls - at_beat) > VAIN_CALLS;
    if (vain || __atomic_load_n(&dm_parent.header->detached, __ATOMIC_RELAXED) != 0)
        give_up();
    else
        come_under_control();
}
