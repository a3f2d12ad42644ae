/* SPDX-License-Identifier: Apache-2.0 */
/* Points that take the hits of a hook as well: each by its own settings. */
#include "controller.h"

#define FIRST ATTUNE_SHARER_FIRST
#define LAST (ATTUNE_HOOK_COUNT - 1)

static void share(struct process *p, unsigned hook, uint32_t word) {
    control_of(p, hook)->parameter = 1u | 1u << (LAST - FIRST);
    control_set(p, hook, word | ATTUNE_CTL_SHARED);
}

static void place_sizes(struct controller *c, struct process *p) {
    (void)c;
    control_of(p, FIRST)->min_value = control_of(p, FIRST)->max_value = 4242;
    control_set(p, FIRST, ATTUNE_CTL_AGGREGATE);
    control_of(p, LAST)->min_value = 1 << 30;
    control_set(p, LAST, ATTUNE_CTL_EVENT);
    share(p, P_MALLOC, ATTUNE_CTL_AGGREGATE);
}

/* What the hook's own point counts does not depend on who shares it. */
static void each_has_its_own_range(void) {
    struct session s = {.controller.slots = 32, .controller.place = place_sizes};
    session_start(&s, "threads 8 0 20000");
    session_end(&s);
    struct attune_aggregate own = aggregate_of(s.process, P_MALLOC);
    struct attune_aggregate shared = aggregate_of(s.process, FIRST);
    EXPECT_EQUAL(shared.count, 160000);
    EXPECT_EQUAL(shared.sum, 160000ull * 4242);
    EXPECT(own.count > shared.count, "%lu blocks of any size", own.count);
    EXPECT(own.count < shared.count + 1000, "%lu blocks of any size", own.count);
    EXPECT_EQUAL(s.process->received[LAST], 0);
    EXPECT_EQUAL(s.process->received[P_MALLOC], 0);
    session_close(&s);
}

static void place_pairs(struct controller *c, struct process *p) {
    const uint32_t *own = c->data;
    control_of(p, FIRST)->sample_mask = 15;
    control_set(p, FIRST, ATTUNE_CTL_EVENT);
    control_set(p, LAST, ATTUNE_CTL_AGGREGATE);
    share(p, P_LOCK, *own);
    control_of(p, P_UNLOCK)->parameter = 1u << (LAST - FIRST);
    control_set(p, P_UNLOCK, ATTUNE_CTL_SHARED);
}

/* Records of a hook and of one that samples it, and a third that has two hooks
 * of which nobody else wants to know. */
static void run_pairs(uint32_t own, uint64_t records) {
    struct session s = {.controller.place = place_pairs, .controller.data = &own};
    session_start(&s, "pairs 1600");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], records);
    EXPECT_EQUAL(s.process->received[FIRST], 101); /* one in 16, at uneven distances */
    EXPECT_EQUAL(aggregate_of(s.process, LAST).count, 3200);
    EXPECT_EQUAL(aggregate_of(s.process, P_UNLOCK).count, 0);
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

static void records_and_samples(void) { run_pairs(ATTUNE_CTL_EVENT, 1600); }

static void hook_without_point(void) { run_pairs(0, 0); }

static void place_hold(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, FIRST, ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION);
    control_set(p, LAST, ATTUNE_CTL_AGGREGATE);
    share(p, P_LOCK, ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_TIMED);
}

/* One lock waits 30 ms: at least 30 million ticks of any clock at 1 GHz, unless it comes
 * late. The value of the others is the mutex. Returns the ticks of the lock that does not
 * wait. */
static uint64_t ticks_beside_values(uint64_t *waited) {
    struct session s = {.controller.place = place_hold};
    session_start(&s, "hold 30000");
    session_end(&s);
    struct attune_aggregate timed = aggregate_of(s.process, FIRST);
    EXPECT_EQUAL(timed.count, 2);
    EXPECT_EQUAL(aggregate_of(s.process, P_LOCK).sum, aggregate_of(s.process, LAST).sum);
    EXPECT(~aggregate_of(s.process, LAST).least[1] > 1 << 22, "no mutex is there");
    session_close(&s);
    *waited = timed.greatest[1];
    return ~timed.least[1];
}

static void durations_beside_values(void) {
    uint64_t ticks = UINT64_MAX, waited = 0;
    for (int tries = 0; (ticks >= 5000000 || waited <= 25000000) && tries < TRIES; tries++)
        ticks = ticks_beside_values(&waited);
    EXPECT(ticks < 5000000, "shortest %lu ticks", ticks);
    EXPECT(waited > 25000000 && waited < 10000000000, "longest %lu ticks", waited);
}

/* A sharer that wants durations which the hook does not take gets none. */
static void place_untimed(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, FIRST, ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION);
    control_set(p, LAST, ATTUNE_CTL_AGGREGATE);
    share(p, P_LOCK, 0);
}

static void durations_need_the_time(void) {
    struct session s = {.controller.place = place_untimed};
    session_start(&s, "pairs 100");
    session_end(&s);
    EXPECT_EQUAL(aggregate_of(s.process, FIRST).count, 0);
    EXPECT_EQUAL(aggregate_of(s.process, LAST).count, 100);
    session_close(&s);
}

const struct test_case shared_cases[] = {
    {"shared_ranges", each_has_its_own_range},   {"shared_records", records_and_samples},
    {"shared_alone", hook_without_point},        {"shared_durations", durations_beside_values},
    {"shared_untimed", durations_need_the_time}, {NULL, NULL},
};
