/* SPDX-License-Identifier: Apache-2.0 */
/* The mailbox and the stubs, in programs that watch for the change. */
#include "controller.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void start(struct session *s, const char *what) {
    char path[500];
    snprintf(path, sizeof(path), "%s/target-commands %s", directory_path, what);
    session_start(s, path);
}

/* One number of the program's output, a line. */
static uint64_t next_number(struct session *s) {
    char text[32];
    size_t length = 0;
    while (length < sizeof(text) - 1 && read(s->output, &text[length], 1) == 1 &&
           text[length] != '\n')
        length++;
    text[length] = '\0';
    EXPECT(length > 0, "the program ended");
    return strtoull(text, NULL, 10);
}

static struct attune_command run(struct session *s, struct attune_command command, unsigned point) {
    EXPECT(command_run(s->process, 3, command, &point, 1), "no safe point was reached");
    return *command_of(s->process, 3);
}

static void mallopt_in_a_malloc(void) {
    struct session s = {0};
    start(&s, "malloc");
    uint64_t mallopt_address = next_number(&s);
    struct attune_command call = {.op = ATTUNE_OP_CALL,
                                  .at = ATTUNE_AT_ALLOC,
                                  .args = {mallopt_address, (uint64_t)M_MMAP_THRESHOLD, 32 << 20}};
    struct attune_command done = run(&s, call, P_MALLOC);
    EXPECT_EQUAL(done.error, 0);
    EXPECT_EQUAL(done.result, 1);
    EXPECT_EQUAL(done.done_by, s.pid);
    EXPECT_EQUAL(done.done_point, P_MALLOC);
    session_end(&s);
    EXPECT(strcmp(s.text, "not mapped\n") == 0, "output %s", s.text);
    session_close(&s);
}

static struct attune_command store(uint64_t address, uint64_t value, uint64_t old) {
    return (struct attune_command){
        .op = ATTUNE_OP_GOT, .at = ATTUNE_AT_LOCK, .args = {address, 0, value, 1, old}};
}

static void store_with_old_value(void) {
    struct session s = {0};
    start(&s, "variable");
    uint64_t variable = next_number(&s), constant = next_number(&s);
    struct attune_command done = run(&s, store(variable, 9, 4), P_LOCK);
    EXPECT_EQUAL(done.error, EAGAIN);
    EXPECT_EQUAL(done.result, 5);
    done = run(&s, store(constant, 9, 6), P_LOCK); /* read-only memory */
    EXPECT_EQUAL(done.error, EFAULT);
    done = run(&s, store(16, 9, 0), P_LOCK); /* no memory */
    EXPECT_EQUAL(done.error, EFAULT);
    done = run(&s, store(variable, 9, 5), P_LOCK);
    EXPECT_EQUAL(done.error, 0);
    EXPECT_EQUAL(done.result, 5);
    session_end(&s);
    EXPECT(strcmp(s.text, "9\n") == 0, "output %s", s.text);
    session_close(&s);
}

/* A command waits for its family and its thread, and for no other. The last one is
 * run where the others are looked at. */
static void commands_choose_their_place(void) {
    struct session s = {0};
    start(&s, "variable");
    uint64_t variable = next_number(&s);
    struct attune_command nop = {.op = ATTUNE_OP_NOP, .at = ATTUNE_AT_ALLOC};
    unsigned points[] = {P_LOCK, P_UNLOCK};
    command_post(s.process, 0, nop, points, 2);
    nop.at = ATTUNE_AT_LOCK;
    nop.thread = s.pid + 1;
    command_post(s.process, 1, nop, points, 2);
    nop.thread = s.pid;
    for (int i = 0; i < 100; i++)
        EXPECT(command_run(s.process, 2, nop, points, 2));
    for (unsigned i = 0; i < 2; i++)
        EXPECT_EQUAL(command_of(s.process, i)->state, ATTUNE_CMD_POSTED);
    EXPECT_EQUAL(run(&s, store(variable, 1, 4), P_UNLOCK).result, 5);
    EXPECT_EQUAL(run(&s, store(variable, 1, 5), P_LOCK).error, 0);
    session_end(&s);
    session_close(&s);
}

/* A thread that ends inside the function would leave the command claimed. */
static void call_of_a_cancelled_thread(void) {
    struct session s = {0};
    start(&s, "cancel");
    struct attune_command call = {
        .op = ATTUNE_OP_CALL, .at = ATTUNE_AT_LOCK, .args = {next_number(&s)}};
    EXPECT_EQUAL(run(&s, call, P_LOCK).error, 0);
    session_end(&s);
    EXPECT(strcmp(s.text, "1\n") == 0, "output %s", s.text);
    session_close(&s);
}

#ifdef __x86_64__

static struct attune_command bind(unsigned stub, uint64_t function) {
    return (struct attune_command){
        .op = ATTUNE_OP_STUB, .at = ATTUNE_AT_STUB | ATTUNE_AT_IO, .args = {stub, function}};
}

static struct attune_command point_slot(struct process *p, uint64_t slot, unsigned stub,
                                        uint64_t old) {
    uint64_t entry = p->header->stub_entry + stub * p->header->stub_size;
    return (struct attune_command){.op = ATTUNE_OP_GOT,
                                   .at = ATTUNE_AT_STUB | ATTUNE_AT_IO,
                                   .args = {slot, 0, entry, 1, old, 1}};
}

struct hits {
    uint64_t count[3];
    uint64_t extra;
};

static void count_hits(const struct attune_record *r, void *data) {
    struct hits *hits = data;
    unsigned stub = r->point - ATTUNE_HOOK_COUNT;
    EXPECT(stub < 3, "point %u", r->point);
    hits->count[stub]++;
    if (stub == 0)
        EXPECT_EQUAL(r->extra, 2); /* the second argument */
    if (stub == 1)
        EXPECT_EQUAL(r->value, 3);
}

/* The program must call something that is hooked already: its read. */
static void stubs_stand_before_functions(void) {
    struct session s = {.controller.records = 1 << 16};
    start(&s, "stubs");
    uint64_t slots[3], functions[3];
    for (int i = 0; i < 3; i++) {
        slots[i] = next_number(&s);
        functions[i] = next_number(&s);
    }
    for (unsigned i = 0; i < 3; i++)
        EXPECT_EQUAL(run(&s, bind(i, functions[i]), P_READ).error, 0);
    EXPECT_EQUAL(run(&s, bind(0, functions[0]), P_READ).error, 0);
    EXPECT_EQUAL(run(&s, bind(0, functions[1]), P_READ).error, EBUSY);
    EXPECT_EQUAL(run(&s, bind(ATTUNE_STUB_COUNT, functions[1]), P_READ).error, EINVAL);
    EXPECT_EQUAL(run(&s, bind(9, s.process->header->stub_entry), P_READ).error, EINVAL);
    for (unsigned i = 0; i < 3; i++) {
        struct attune_command done =
            run(&s, point_slot(s.process, slots[i], i, functions[i]), P_READ);
        EXPECT_EQUAL(done.error, 0);
        EXPECT_EQUAL(done.result, functions[i]);
    }
    /* a safe point at a stub, and then events */
    struct attune_command nop = {.op = ATTUNE_OP_NOP, .at = ATTUNE_AT_STUB};
    EXPECT_EQUAL(run(&s, nop, ATTUNE_HOOK_COUNT + 2).done_point, ATTUNE_HOOK_COUNT + 2);
    for (unsigned i = 0; i < 3; i++)
        control_set(s.process, ATTUNE_HOOK_COUNT + i, ATTUNE_CTL_EVENT);
    struct hits hits = {0};
    for (double end = now_seconds() + WAIT_SECONDS;
         hits.count[0] <= 1000 || hits.count[1] <= 1000;) {
        drain(s.process, count_hits, &hits);
        EXPECT(now_seconds() < end, "%lu and %lu hits", hits.count[0], hits.count[1]);
    }
    kill(s.pid, SIGTERM);
    session_end(&s);
    EXPECT(atol(s.text) > 1000, "output %s", s.text);
    session_close(&s);
}

#endif

const struct test_case command_cases[] = {
    {"mallopt_in_malloc", mallopt_in_a_malloc},
    {"store_with_old_value", store_with_old_value},
    {"commands_choose_place", commands_choose_their_place},
    {"call_cancelled", call_of_a_cancelled_thread},
#ifdef __x86_64__
    {"stubs", stubs_stand_before_functions},
#endif
    {NULL, NULL},
};
