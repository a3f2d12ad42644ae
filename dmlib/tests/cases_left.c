/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks that are left in the middle, and where little is left for them: of a thread's life,
 * of a stack, of what the C library knows. */
#include "controller.h"

#include <stdlib.h>

static void place_locks(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
}

static void place_times(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION);
    control_set(p, P_MALLOC, ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION);
    control_set(p, P_WRITE, ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION);
}

static void run(struct session *s, const char *arguments) {
    if (s->controller.place == NULL)
        s->controller.place = place_locks;
    session_start(s, arguments);
    session_end(s);
}

/* A lock that a handler leaves while it waits never was. */
static void handlers_leave_waits(void) {
    struct session s = {.controller.place = place_times};
    run(&s, "waits 300 1000");
    EXPECT_EQUAL(s.process->received[P_LOCK], 2 + 1000);
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

static void expect_free_slots(struct process *p, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        EXPECT_EQUAL(slot_of(p, i)->state, ATTUNE_SLOT_FREE);
}

/* By whatever instruction a thread is cancelled, its stack is unwound, and its slot is
 * closed. */
static void cancelled_anywhere(void) {
    struct session s = {.controller.slots = 8};
    run(&s, "anywhere 200");
    EXPECT(s.process->received[P_LOCK] > 200);
    expect_free_slots(s.process, 8);
    session_close(&s);
}

/* Hooks of a thread whose slot is closed count as lost, and claim no other. */
static void destructors_to_the_end(void) {
    struct session s = {.controller.slots = 8};
    run(&s, "destructors 30");
    uint64_t received = s.process->received[P_LOCK];
    EXPECT(received >= 1 + 2 * 30, "%lu received", received);
    EXPECT_EQUAL(received + lost(s.process), 1 + 4 * 30);
    expect_free_slots(s.process, 8);
    session_close(&s);
}

/* While a child registers it has descriptors open, which would stay so. */
static void registration_is_not_left(void) {
    struct session s = {0};
    run(&s, "opens");
    EXPECT_EQUAL(s.controller.count, 2);
    session_close(&s);
}

/* A child that is left while it waits for an answer asks again. */
static void asking_is_left(void) {
    struct session s = {0};
    run(&s, "asks 300");
    EXPECT_EQUAL(s.controller.count, 2);
    session_close(&s);
}

static void child_that_nobody_knows(void) {
    struct session s = {0};
    run(&s, "rawclone");
    EXPECT_EQUAL(s.controller.count, 1);
    EXPECT(child_has_asked(s.process));
    EXPECT_EQUAL(s.process->received[P_LOCK], 20);
    session_close(&s);
}

static void forked_among_threads(void) {
    struct session s = {.controller.place = place_times};
    run(&s, "among 100");
    EXPECT(child_has_asked(s.process));
    session_close(&s);
}

static void place_late(struct controller *c, struct process *p) {
    p->late = true;
    place_locks(c, p);
}

/* A child that goes on in the middle of a measurement does so in its parent's memory: one of
 * the parent's is counted once more, and those that follow are delivered one late. */
static void forked_in_handlers(void) {
    struct session s = {.controller.place = place_late};
    run(&s, "forking 20000 100");
    uint64_t all = s.process->received[P_LOCK] + s.process->unwritten + lost(s.process);
    uint64_t pairs = strtoul(s.text, NULL, 10);
    EXPECT(pairs >= 20000 && all >= pairs && all <= pairs + 100, "%lu of %lu locks", all, pairs);
    EXPECT_EQUAL(s.controller.count, 1);
    session_close(&s);
}

/* Beside what the kernel and the handler need, of whatever stack. */
#define MOST_OF_STACK 3072

static void little_of_a_stack(void) {
    struct session s = {.controller.place = place_times, .extra = "LD_BIND_NOW=1"};
    run(&s, "smallstack");
    EXPECT_EQUAL(s.controller.count, 2);
    char *more;
    long child = strtol(s.text, &more, 10), parent = strtol(more, NULL, 10);
    EXPECT(parent > 0 && parent < MOST_OF_STACK, "the first hooks used %ld bytes", parent);
    EXPECT(child > 0 && child < MOST_OF_STACK, "a child's used %ld bytes", child);
    session_close(&s);
}

const struct test_case left_cases[] = {
    {"left_waiting", handlers_leave_waits},
    {"cancel_anywhere", cancelled_anywhere},
    {"destructors_to_the_end", destructors_to_the_end},
    {"left_registering", registration_is_not_left},
    {"left_asking", asking_is_left},
    {"raw_clone", child_that_nobody_knows},
    {"fork_among_threads", forked_among_threads},
    {"fork_in_handler", forked_in_handlers},
    {"small_stack", little_of_a_stack},
    {NULL, NULL},
};
