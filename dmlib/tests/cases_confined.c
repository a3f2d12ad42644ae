/* SPDX-License-Identifier: Apache-2.0 */
/* Programs under seccomp filters that kill for what they do not list: no system call
 * of ours is made that nobody has asked for. */
#include "controller.h"

#include <errno.h>

static void trace_locks(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
}

static void run(const char *arguments) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, arguments);
    session_end(&s);
    session_close(&s);
}

/* Before their first hook, and far beyond the calls after which a child asks. */
static void children_confine_themselves_first(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "confined_children 3 0 0 100");
    session_end(&s);
    EXPECT_EQUAL(s.controller.count, 1); /* none registered */
    session_close(&s);
}

/* At any time: before a child asks, while it is looked at, and after it registered. */
static void children_confine_themselves_later(void) { run("confined_children 60 490 100 5"); }

/* From the first call on, and until they have been looked at. */
static void children_are_strict(void) {
    struct session s = {0};
    session_start(&s, "strict_children 3 200000");
    session_end(&s);
    EXPECT_EQUAL(s.controller.count, 1);
    EXPECT(child_has_asked(s.process));
    session_close(&s);
}

static void children_are_confined_by_their_parent(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "confined_parent 100");
    session_end(&s);
    EXPECT_EQUAL(s.controller.count, 1);
    EXPECT(child_has_asked(s.process));
    session_close(&s);
}

static void threads_begin_confined(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "confined_threads 5 100");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], 5 * 100);
    session_close(&s);
}

static void post(struct process *p, uint32_t op) {
    const unsigned lock = P_LOCK;
    struct attune_command command = {.op = op, .at = ATTUNE_AT_LOCK, .args = {1}};
    command_post(p, 0, command, &lock, 1);
}

static void post_call(struct controller *c, struct process *p) {
    (void)c;
    post(p, ATTUNE_OP_CALL);
}

/* A call that was posted before the program confined itself, and is come by after. */
static void command_waits_for_the_confined(void) {
    struct session s = {.controller.place = post_call};
    session_start(&s, "confined_call");
    session_end(&s);
    EXPECT_EQUAL(command_of(s.process, 0)->state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(command_of(s.process, 0)->error, EPERM);
    session_close(&s);
}

static void post_nop(struct controller *c, struct process *p) {
    (void)c;
    post(p, ATTUNE_OP_NOP);
}

/* Executing a command reads no clock, for the program may have taken it from itself. */
static void command_without_clock(void) {
    struct session s = {.controller.place = post_nop};
    session_start(&s, "clockless_command");
    session_end(&s);
    EXPECT_EQUAL(command_of(s.process, 0)->state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(command_of(s.process, 0)->error, 0);
    session_close(&s);
}

const struct test_case confined_cases[] = {
    {"confined_children", children_confine_themselves_first},
    {"confined_later", children_confine_themselves_later},
    {"strict_children", children_are_strict},
    {"confined_parent", children_are_confined_by_their_parent},
    {"confined_threads", threads_begin_confined},
    {"confined_call", command_waits_for_the_confined},
    {"clockless_command", command_without_clock},
    {NULL, NULL},
};
