/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a forked child comes under control. It may put itself under a seccomp filter
 * at any time, and a filter that does not list a system call of ours kills it: so it
 * makes none before the controller has looked at its filters from outside
 * (dmlib_abi.h, ATTUNE_CHILD_*). What the controller has seen holds for as long as the
 * child does nothing else: the child asks in one hook, goes on, and waits in a later
 * one, busy and for a moment only, when the controller pays attention.
 */
#include "dmlib.h"

/* Most children of fork call exec or exit soon: only one that stays is worth
 * the controller's look. Until then it runs as if nobody watched. */
#define CHILD_CALLS 1000
#define CHILD_TICKS (10 * DM_MILLISECOND)

/* A child whom nobody answers has no controller any more. Its calls take the long
 * way until then, 20 ns each. */
#define VAIN_CALLS 1000000
#define VAIN_TICKS (10000 * DM_MILLISECOND)

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

static enum answer wait_for_answer(int32_t self) {
    uint64_t waits = said(ATTUNE_CHILD_WAITS, self), none = said(ATTUNE_CHILD_NONE, 0);
    uint64_t until = dm_ticks() + WAIT_TICKS;
    while (last_said() == waits && dm_ticks() < until)
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

static void come_under_control(void) {
    enum answer answer = ask_as_thread();
    if (answer == MAY_NOT || (answer == MAY && !child_register()))
        dm_go_inert();
    if (answer == LATER)
        dm_child_disclaim(REGISTERS_NOT);
    else
        dm_child_settle();
}

void dm_child_hook(void) {
    uint32_t calls = __atomic_add_fetch(&dm_live.child_calls, 1, __ATOMIC_RELAXED);
    uint64_t now = dm_ticks();
    if (calls == 1) {
        dm_live.child_since = now;
        __atomic_add_fetch(&dm_parent.header->fork_count, 1, __ATOMIC_RELAXED);
        return;
    }
    uint64_t age = now - dm_live.child_since;
    if (calls < CHILD_CALLS && age < CHILD_TICKS)
        return;
    uint32_t unclaimed = REGISTERS_NOT;
    if (!__atomic_compare_exchange_n(&dm_live.child_registers, &unclaimed, REGISTERS, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    bool vain = calls > VAIN_CALLS && age > VAIN_TICKS;
    if (vain || __atomic_load_n(&dm_parent.header->detached, __ATOMIC_RELAXED) != 0) {
        dm_go_inert();
        dm_child_settle();
    } else {
        come_under_control();
    }
}
