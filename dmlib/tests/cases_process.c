/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads that come and go. */
#include "controller.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void trace_locks(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
}

/* Waits until n locks of the process have arrived. */
static void expect_locks(struct process *p, uint64_t n) {
    for (double end = now_seconds() + WAIT_SECONDS; p->received[P_LOCK] < n; poll(NULL, 0, 1)) {
        drain(p, NULL, NULL);
        EXPECT(now_seconds() < end, "%lu locks arrived, want %lu", p->received[P_LOCK], n);
    }
}

static void forked_child_registers(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "fork 1");
    struct process *child = controller_process(&s.controller, 1);
    EXPECT_EQUAL(child->hello.flags, ATTUNE_HELLO_FORKED);
    EXPECT(child->hello.pid != s.pid && child->header->pid == child->hello.pid);
    EXPECT_EQUAL(child->ready.status, ATTUNE_READY_OK);
    expect_locks(child, 1000);
    kill(child->hello.pid, SIGTERM);
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], 1); /* none of the child's */
    EXPECT_EQUAL(s.controller.count, 2);
    session_close(&s);
}

static void grandchildren_register(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "fork 4");
    for (int i = 1; i <= 4; i++)
        EXPECT_EQUAL(controller_process(&s.controller, i)->hello.flags, ATTUNE_HELLO_FORKED);
    struct process *last = controller_process(&s.controller, 4);
    expect_locks(last, 100);
    kill(last->hello.pid, SIGTERM);
    session_end(&s);
    session_close(&s);
}

/* Long before the calls after which others ask. */
static void slow_child_registers(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "slow");
    struct process *child = controller_process(&s.controller, 1);
    EXPECT_EQUAL(child->hello.flags, ATTUNE_HELLO_FORKED);
    kill(child->hello.pid, SIGTERM);
    session_end(&s);
    session_close(&s);
}

static void next_file_is_smaller(struct controller *c, struct process *p) {
    (void)p;
    c->padding = 0;
}

static void next_is_refused(struct controller *c, struct process *p) {
    (void)p;
    c->manner = MANNER_REFUSE;
}

/* A child cannot write to its parent's memory file once it has been answered, whatever
 * comes of it. */
static void children_leave_their_parents_memory(void) {
    struct session same = {.controller.place = trace_locks};
    session_start(&same, "left");
    session_end(&same);
    session_close(&same);
    struct session smaller = {.controller = {.place = next_file_is_smaller, .padding = 1 << 20}};
    session_start(&smaller, "left");
    session_end(&smaller);
    struct process *child = controller_process(&smaller.controller, 1);
    EXPECT(child->header->total_size < smaller.process->header->total_size);
    session_close(&smaller);
    struct session refused = {.controller.place = next_is_refused};
    session_start(&refused, "left");
    session_end(&refused);
    EXPECT_EQUAL(controller_process(&refused.controller, 1)->ready.magic, 0);
    session_close(&refused);
}

static void brief_children_do_not_register(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "brief 50");
    session_end(&s);
    EXPECT_EQUAL(s.controller.count, 1);
    EXPECT_EQUAL(s.process->received[P_LOCK], 0); /* none of theirs */
    session_close(&s);
}

static double time_without_controller(const struct controller *c) {
    char *argv[] = {(char *)target_path, "brief", "3", NULL}, text[100];
    int output;
    double start = now_seconds();
    EXPECT_EQUAL(finish(spawn(library_path, c, argv, NULL, &output)), 0);
    double took = now_seconds() - start;
    read_all(output, text, sizeof(text));
    return took;
}

/* A controller that died is no reason for children to wait, or to differ. */
static void children_outlive_the_controller(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "fork 1");
    struct process *child = controller_process(&s.controller, 1);
    pid_t pid = child->hello.pid;
    controller_stop(&s.controller);
    double took = 1;
    for (int tries = 0; took >= 0.2 && tries < TRIES; tries++)
        took = time_without_controller(&s.controller);
    EXPECT(took < 0.2, "took %.3f s", took);
    kill(pid, SIGTERM);
    EXPECT_EQUAL(finish(s.pid), 0);
}

/* The memory stays, full rings lose, the program goes on. */
static void controller_dies_mid_run(void) {
    struct session s = {.controller.place = trace_locks, .controller.records = 1 << 8};
    session_start(&s, "threads 2 3000000 0");
    controller_stop(&s.controller);
    EXPECT_EQUAL(finish(s.pid), 0);
    read_all(s.output, s.text, sizeof(s.text));
    EXPECT(strcmp(s.text, "done\n") == 0, "output %s", s.text);
}

static void exec_after(const char *how) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, how);
    session_end(&s);
    EXPECT_EQUAL(s.controller.count, 2);
    struct process *second = controller_process(&s.controller, 1);
    EXPECT_EQUAL(second->hello.flags, 0);
    EXPECT_EQUAL(second->received[P_LOCK], 7);
    EXPECT_EQUAL(s.process->received[P_LOCK], 20);
    EXPECT(!child_has_asked(s.process));
    session_close(&s);
}

static void vfork_and_exec(void) { exec_after("vfork"); }
static void posix_spawned(void) { exec_after("spawn"); }

static void trace_aligned(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_ALIGNED, ATTUNE_CTL_EVENT);
}

static void library_opened_late(void) {
    char plugin[500];
    snprintf(plugin, sizeof(plugin), "PLUGIN=%s/libplugin.so", directory_path);
    struct session s = {.controller.place = trace_aligned, .extra = plugin};
    session_start(&s, "dlopen 1000");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_ALIGNED], 1000);
    session_close(&s);
}

static void program_has_its_own_allocator(void) {
    char path[500];
    snprintf(path, sizeof(path), "%s/target-allocator 500", directory_path);
    struct session s = {.controller.place = trace_locks};
    session_start(&s, path);
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], 500);
    session_close(&s);
}

static void threads_are_told_apart(void) {
    struct session s = {.controller.place = trace_locks, .controller.rings = 64};
    session_start(&s, "threads 20 500 0");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], 20 * 500);
    EXPECT_EQUAL(lost(s.process), 0);
    EXPECT(s.process->header->ring_next <= 20);
    session_close(&s);
}

static void sum_locks(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_AGGREGATE);
}

/* Sums are exact with a few slots, and with threads that take over the slots of those
 * that have ended. */
static void sums_of_threads(const char *arguments, uint64_t hits) {
    struct session s = {.controller.place = sum_locks, .controller.slots = 8};
    session_start(&s, arguments);
    session_end(&s);
    struct attune_aggregate sums = aggregate_of(s.process, P_LOCK);
    uint64_t in_histogram = 0;
    for (unsigned b = 0; b < ATTUNE_HIST_BUCKETS; b++)
        in_histogram += sums.histogram[b];
    EXPECT_EQUAL(sums.count, hits);
    EXPECT_EQUAL(in_histogram, hits);
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

static void sums_of_256_threads(void) { sums_of_threads("threads 256 1000 0", 256 * 1000); }
static void sums_of_600_threads(void) { sums_of_threads("threads 600 500 0", 600 * 500); }
static void sums_of_threads_in_turn(void) { sums_of_threads("sequence 100 200", 100 * 200); }

/* With a slot and a ring for each, all deliver events. */
static void events_of_threads(uint32_t threads, const char *arguments) {
    struct session s = {.controller.place = trace_locks,
                        .controller.slots = threads + 1,
                        .controller.rings = threads + 1,
                        .controller.records = 256};
    session_start(&s, arguments);
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], threads * 100);
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

static void events_of_256_threads(void) { events_of_threads(256, "threads 256 100 0"); }
static void events_of_600_threads(void) { events_of_threads(600, "threads 600 100 0"); }

static void thousands_of_threads(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "threads 2000 20 0");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK] + lost(s.process), 2000 * 20);
    EXPECT(s.process->received[P_LOCK] > 0);
    session_close(&s);
}

/* More threads than slots, one after the other: all are closed, freed, and
 * their slots and rings used again. */
static void slots_are_used_again(void) {
    struct session s = {
        .controller.place = trace_locks, .controller.slots = 4, .controller.rings = 3};
    session_start(&s, "sequence 200 10");
    session_end(&s);
    struct process *p = s.process;
    EXPECT_EQUAL(p->received[P_LOCK] + lost(p), 200 * 10);
    EXPECT(p->received[P_LOCK] > 20 * 10, "%lu of 2000 arrived", p->received[P_LOCK]);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQUAL(slot_of(p, i)->state, ATTUNE_SLOT_FREE);
    session_close(&s);
}

static void other_destructors_are_measured(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "destructor 30");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], 31);
    EXPECT_EQUAL(lost(s.process), 0);
    session_close(&s);
}

const struct test_case process_cases[] = {
    {"fork_registers", forked_child_registers},
    {"grandchildren_register", grandchildren_register},
    {"slow_child", slow_child_registers},
    {"left_memory", children_leave_their_parents_memory},
    {"brief_children", brief_children_do_not_register},
    {"children_without_controller", children_outlive_the_controller},
    {"controller_dies", controller_dies_mid_run},
    {"vfork_exec", vfork_and_exec},
    {"posix_spawn", posix_spawned},
    {"dlopen", library_opened_late},
    {"own_allocator", program_has_its_own_allocator},
    {"threads", threads_are_told_apart},
    {"threads_2000", thousands_of_threads},
    {"sums_256", sums_of_256_threads},
    {"sums_600", sums_of_600_threads},
    {"sums_in_turn", sums_of_threads_in_turn},
    {"events_256", events_of_256_threads},
    {"events_600", events_of_600_threads},
    {"slot_reuse", slots_are_used_again},
    {"destructors", other_destructors_are_measured},
    {NULL, NULL},
};
