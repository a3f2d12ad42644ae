/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured: records, aggregates, losses, exactly. */
#include "controller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t lock_word, sample_mask;
static uint64_t range_min, range_max = UINT64_MAX;
static unsigned placed_point;

static void place_point(struct controller *c, struct process *p) {
    (void)c;
    struct attune_point_control *control = control_of(p, placed_point);
    control->sample_mask = sample_mask;
    control->min_value = range_min;
    control->max_value = range_max;
    control_set(p, placed_point, lock_word);
}

static void start(struct session *s, const char *arguments, unsigned point, uint32_t word) {
    placed_point = point;
    lock_word = word;
    s->controller.place = place_point;
    session_start(s, arguments);
}

/* Nobody reads: what does not fit is counted, to the last one. */
static void overflow_is_counted(void) {
    struct session s = {.controller.records = 256};
    start(&s, "pairs 100000", P_LOCK, ATTUNE_CTL_EVENT);
    session_end_undrained(&s);
    EXPECT_EQUAL(drain(s.process, NULL, NULL), 256);
    EXPECT_EQUAL(lost(s.process), 100000 - 256);
    session_close(&s);
}

static void more_threads_than_rings(void) {
    struct session s = {.controller.rings = 2};
    start(&s, "threads 8 1000 0", P_LOCK, ATTUNE_CTL_EVENT);
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK] + lost(s.process), 8000);
    EXPECT_EQUAL(s.process->header->lost_no_slot, 0);
    session_close(&s);
}

/* With a reader, through many rounds of a small ring. */
static void ring_wraps(void) {
    struct session s = {.controller.records = 64};
    start(&s, "pairs 5000000", P_LOCK, ATTUNE_CTL_EVENT);
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK] + lost(s.process), 5000000);
    EXPECT(s.process->received[P_LOCK] > 10 * 64);
    session_close(&s);
}

struct order {
    uint64_t time;
    uint64_t mutex;
    unsigned point;
    uint64_t count;
};

static void expect_alternation(const struct attune_record *r, void *data) {
    struct order *o = data;
    EXPECT(r->time >= o->time, "time went back from %lu to %lu", o->time, r->time);
    EXPECT(o->count == 0 || r->value == o->mutex, "value %lx after %lx", r->value, o->mutex);
    EXPECT_EQUAL(r->point, o->count % 2 == 0 ? P_LOCK : P_UNLOCK);
    EXPECT_EQUAL(r->thread, 0);
    EXPECT_EQUAL(r->extra, 0);
    o->time = r->time;
    o->mutex = r->value;
    o->count++;
}

static void place_pair(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
    control_set(p, P_UNLOCK, ATTUNE_CTL_EVENT);
}

static void records_are_in_order(void) {
    struct session s = {.controller.place = place_pair};
    struct order order = {0};
    session_start(&s, "pairs 5000");
    session_end_undrained(&s);
    EXPECT_EQUAL(drain(s.process, expect_alternation, &order), 10000);
    session_close(&s);
}

static void aggregates_are_exact(void) {
    struct session s = {.controller.slots = 32};
    range_min = range_max = 4242;
    start(&s, "threads 8 0 20000", P_MALLOC, ATTUNE_CTL_AGGREGATE);
    session_end(&s);
    struct attune_aggregate sum = aggregate_of(s.process, P_MALLOC);
    EXPECT_EQUAL(sum.count, 160000);
    EXPECT_EQUAL(sum.sum, 160000ull * 4242);
    EXPECT_EQUAL(~sum.least[1], 4242);
    EXPECT_EQUAL(sum.greatest[1], 4242);
    EXPECT_EQUAL(sum.histogram[13], 160000); /* 4096 <= 4242 < 8192 */
    EXPECT(sum.least[0] == 0 && sum.greatest[0] == 0);
    session_close(&s);
}

static struct attune_aggregate select_blocks(uint64_t min, uint64_t max) {
    struct session s = {0};
    range_min = min;
    range_max = max;
    start(&s, "threads 2 0 1000", P_MALLOC, ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE);
    session_end(&s);
    struct attune_aggregate sum = aggregate_of(s.process, P_MALLOC);
    EXPECT_EQUAL(s.process->received[P_MALLOC], sum.count);
    session_close(&s);
    return sum;
}

static void predicate_selects(void) {
    struct attune_aggregate larger = select_blocks(4243, UINT64_MAX);
    EXPECT(larger.count == 0 || ~larger.least[1] >= 4243);
    EXPECT(larger.count < 1000);
    EXPECT_EQUAL(select_blocks(4242, 4242).count, 2000);
}

static uint64_t wanted_flags;

static void expect_flags(const struct attune_record *r, void *data) {
    (void)data;
    EXPECT_EQUAL(r->flags, wanted_flags);
}

/* One in 16 of 1600, at uneven distances. */
#define SAMPLED 101

static void sampling_takes_one_in_n(void) {
    struct session s = {0};
    sample_mask = 15;
    wanted_flags = ATTUNE_RECORD_SAMPLED;
    start(&s, "pairs 1600", P_LOCK, ATTUNE_CTL_EVENT);
    session_end_undrained(&s);
    EXPECT_EQUAL(drain(s.process, expect_flags, NULL), SAMPLED);
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

static void sampling_leaves_aggregates_whole(void) {
    struct session s = {0};
    sample_mask = 15;
    start(&s, "pairs 1600", P_LOCK, ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE);
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], SAMPLED);
    EXPECT_EQUAL(aggregate_of(s.process, P_LOCK).count, 1600);
    session_close(&s);
}

static void expect_wait(const struct attune_record *r, void *data) {
    uint64_t *longest = data;
    EXPECT_EQUAL(r->flags, ATTUNE_RECORD_DURATION);
    EXPECT(r->value > 4096, "the value is the mutex, not %lu", r->value);
    if (r->extra > *longest)
        *longest = r->extra;
}

/* One lock waits 30 ms: at least 30 million ticks of any clock at 1 GHz, unless it comes
 * late. Returns the ticks of the other, which does not wait. */
static uint64_t ticks_without_wait(uint64_t *waited) {
    struct session s = {0};
    uint64_t longest = 0;
    start(&s, "hold 30000", P_LOCK, ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION);
    session_end_undrained(&s);
    EXPECT_EQUAL(drain(s.process, expect_wait, &longest), 2);
    struct attune_aggregate sum = aggregate_of(s.process, P_LOCK);
    EXPECT_EQUAL(sum.greatest[1], longest);
    EXPECT_EQUAL(sum.count, 2);
    session_close(&s);
    *waited = longest;
    return ~sum.least[1];
}

static void duration_of_a_wait(void) {
    uint64_t ticks = UINT64_MAX, waited = 0;
    for (int tries = 0; (ticks >= 5000000 || waited <= 25000000) && tries < TRIES; tries++)
        ticks = ticks_without_wait(&waited);
    EXPECT(ticks < 5000000, "shortest %lu ticks", ticks);
    EXPECT(waited > 25000000 && waited < 10000000000, "longest %lu ticks", waited);
}

static uint64_t why_not; /* the last lock is refused */

static void expect_lock(const struct attune_record *r, void *data) {
    uint64_t *free_ones = data;
    EXPECT(r->value > 4096, "the value is the mutex, not %lu", r->value);
    EXPECT_EQUAL(r->extra, *free_ones > 0 ? 0 : why_not);
    if (*free_ones > 0)
        --*free_ones;
}

static void locks_by_a_clock(void) {
    struct session s = {0};
    uint64_t free_ones = 10;
    why_not = ETIMEDOUT;
    start(&s, "clocklock 10", P_CLOCKLOCK, ATTUNE_CTL_EVENT);
    session_end_undrained(&s);
    EXPECT_EQUAL(drain(s.process, expect_lock, &free_ones), 11);
    session_close(&s);
}

/* By the full way, which reads the clock first, and by the hot one. */
static void refused_lock(uint32_t word) {
    struct session s = {0};
    uint64_t free_ones = 1;
    why_not = EDEADLK;
    start(&s, "deadlock", P_LOCK, word);
    session_end_undrained(&s);
    EXPECT_EQUAL(drain(s.process, expect_lock, &free_ones), 2);
    session_close(&s);
}

static void refused_locks_say_why(void) {
    refused_lock(ATTUNE_CTL_EVENT);
    refused_lock(ATTUNE_CTL_EVENT | ATTUNE_CTL_TIMED);
}

static void place_io(struct controller *c, struct process *p) {
    (void)c;
    for (unsigned i = P_READ; i <= P_PWRITE; i++)
        control_set(p, i, ATTUNE_CTL_AGGREGATE);
}

static void io_is_counted_in_bytes(void) {
    struct session s = {.controller.place = place_io};
    session_start(&s, "io 100");
    session_end(&s);
    struct attune_aggregate sum = aggregate_of(s.process, P_READ);
    EXPECT_EQUAL(sum.count, 200); /* half of them fail */
    EXPECT_EQUAL(sum.sum, 1000);
    EXPECT_EQUAL(sum.histogram[0], 100);
    EXPECT_EQUAL(aggregate_of(s.process, P_PREAD).sum, 2700);
    EXPECT_EQUAL(aggregate_of(s.process, P_WRITE).sum, 3000);
    EXPECT_EQUAL(aggregate_of(s.process, P_PWRITE).sum, 4000);
    session_close(&s);
}

static void place_heap(struct controller *c, struct process *p) {
    (void)c;
    for (unsigned i = P_MALLOC; i <= P_POSIX; i++)
        control_set(p, i, ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION);
}

static void heap_works_while_traced(void) {
    struct session s = {.controller.place = place_heap};
    session_start(&s, "heap 1000");
    session_end(&s);
    EXPECT(aggregate_of(s.process, P_FREE).count >= 5000);
    EXPECT_EQUAL(aggregate_of(s.process, P_REALLOC).count, 1000);
    EXPECT_EQUAL(aggregate_of(s.process, P_MEMALIGN).count, 1000);
    EXPECT_EQUAL(aggregate_of(s.process, P_ALIGNED).count, 1000);
    EXPECT_EQUAL(aggregate_of(s.process, P_POSIX).count, 1000);
    session_close(&s);
}

static void place_signals(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
    control_set(p, P_WRITE, ATTUNE_CTL_EVENT);
}

/* A handler's hooks inside a measurement are lost, and counted. */
static void signal_handlers_use_hooks(void) {
    struct session s = {.controller.place = place_signals};
    session_start(&s, "signals 3000000");
    session_end(&s);
    long handled = atol(s.text);
    EXPECT(handled > 10, "%ld signals", handled);
    uint64_t arrived = s.process->received[P_LOCK] + s.process->received[P_WRITE];
    EXPECT_EQUAL(arrived + lost(s.process), 3000000 + 2 * handled);
    session_close(&s);
}

/* Locks of mutexes on the stack are the storm, those in the program's data
 * come after it. */
static void place_jumps(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
    control_of(p, P_UNLOCK)->max_value = 0x600000000000;
    control_set(p, P_UNLOCK, ATTUNE_CTL_AGGREGATE);
}

static void handlers_leave_by_longjmp(void) {
    struct session s = {.controller.place = place_jumps};
    session_start(&s, "jumps 3000 10000");
    session_end(&s);
    uint64_t after = aggregate_of(s.process, P_UNLOCK).count;
    EXPECT(after > 9000 && after <= 10000, "%lu of 10000 measured", after);
    session_close(&s);
}

static void cancelled_in_read(void) {
    struct session s = {0};
    start(&s, "cancel", P_READ, ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION);
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_READ], 3); /* the cancelled one does not return */
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

static void place_detached(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
    p->header->detached = 1;
}

static void detached_is_inert(void) {
    struct session s = {.controller.place = place_detached};
    session_start(&s, "threads 2 1000 0");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], 0);
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

const struct test_case event_cases[] = {
    {"overflow_counted", overflow_is_counted},
    {"more_threads_than_rings", more_threads_than_rings},
    {"ring_wraps", ring_wraps},
    {"records_in_order", records_are_in_order},
    {"aggregates_exact", aggregates_are_exact},
    {"predicate", predicate_selects},
    {"sampling", sampling_takes_one_in_n},
    {"sampling_and_aggregates", sampling_leaves_aggregates_whole},
    {"duration", duration_of_a_wait},
    {"clocklock", locks_by_a_clock},
    {"refused_locks", refused_locks_say_why},
    {"io_bytes", io_is_counted_in_bytes},
    {"heap", heap_works_while_traced},
    {"signal_handlers", signal_handlers_use_hooks},
    {"longjmp", handlers_leave_by_longjmp},
    {"cancel", cancelled_in_read},
    {"detached", detached_is_inert},
    {NULL, NULL},
};
