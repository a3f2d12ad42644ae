/* SPDX-License-Identifier: Apache-2.0 */
/* A thread is held up between its look at a command and its claim: another thread executes the
 * command meanwhile, and the controller puts another one in its place. Or the thread comes by
 * a safe point in the middle of one. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include "unit.h"

#define POINT 70u

static struct dm_mapping mapping;

/* What happens where the Makefile has a thread held up; at no other time. Handlers change it, and
 * the compiler knows that raise calls nothing of this file. */
static const struct attune_command *volatile next;

static void replace(void) {
    if (next != NULL)
        mapping.mailbox[0] = *next;
    next = NULL;
}

bool __real_dm_confined(void);
bool __wrap_dm_confined(void);
int __real_pthread_setcancelstate(int state, int *before);
int __wrap_pthread_setcancelstate(int state, int *before);

/* After what the family permits was looked at. */
static bool early, confined;

/* What comes in the middle of a look, once. */
static void (*interrupt)(void);

static void come(void) {
    void (*now)(void) = interrupt;
    interrupt = NULL;
    if (now != NULL)
        now();
}

bool __wrap_dm_confined(void) {
    if (early)
        replace();
    come();
    return confined || __real_dm_confined();
}

/* The function has a point itself, which the controller wants attended to. */
static bool patched;

/* After it was looked at whether the thread is in a handler. */
int __wrap_pthread_setcancelstate(int state, int *before) {
    replace();
    if (patched)
        dm_attend(POINT, ATTUNE_AT_LOCK, ATTUNE_CTL_MAILBOX);
    return __real_pthread_setcancelstate(state, before);
}

static volatile unsigned called;

static uint64_t call_me(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    (void)b, (void)c, (void)d, (void)e, (void)f;
    called++;
    return a;
}

static struct dm_safe_point here = {.point = POINT};

static void look(int signal) {
    (void)signal;
    dm_mailbox_run(&here);
}

#define CALL .op = ATTUNE_OP_CALL
#define NOP .op = ATTUNE_OP_NOP
#define HERE .point = POINT + 1
#define AT(family) .at = ATTUNE_AT_##family

static const struct replaced {
    uint32_t family;
    bool early, handler, confined;
    struct attune_command first, second;
} all_replaced[] = {
    {ATTUNE_AT_LOCK, .early = true, .first = {NOP, AT(LOCK)}, .second = {CALL, AT(ALLOC)}},
    {ATTUNE_AT_PATCH, .early = true, .first = {NOP, AT(PATCH)}, .second = {CALL, AT(PATCH)}},
    {ATTUNE_AT_LOCK, .early = true, .first = {NOP, AT(LOCK)},
     .second = {NOP, AT(LOCK), .point = 1}},
    {ATTUNE_AT_LOCK, .early = true, .first = {NOP, AT(LOCK)},
     .second = {NOP, AT(LOCK), .thread = 1}},
    {ATTUNE_AT_LOCK, .first = {CALL, AT(LOCK)}, .second = {CALL, AT(ALLOC)}},
    /* which the thread is not prepared for */
    {ATTUNE_AT_LOCK, .first = {CALL, AT(LOCK)}, .second = {NOP, AT(LOCK)}},
    /* a call that is permitted in a handler, and one that is not */
    {ATTUNE_AT_IO, .handler = true, .first = {CALL, AT(IO), HERE}, .second = {CALL, AT(IO)}},
    /* nor does a thread that executes nothing answer for others */
    {ATTUNE_AT_IO, .early = true, .confined = true, .first = {NOP, AT(IO)},
     .second = {NOP, AT(LOCK)}},
};

static struct attune_command posted(struct attune_command command) {
    command.state = ATTUNE_CMD_POSTED;
    command.args[0] = (uint64_t)(uintptr_t)call_me;
    command.args[1] = 1;
    return command;
}

static void check_replaced(const struct replaced *r) {
    struct attune_command second = posted(r->second);
    mapping.mailbox[0] = posted(r->first);
    next = &second;
    early = r->early;
    confined = r->confined;
    here.family = r->family;
    called = 0;
    if (r->handler)
        raise(SIGUSR1);
    else
        look(0);
    early = confined = false;
    EXPECT(next == NULL);
    EXPECT_EQUAL(called, 0);
    EXPECT_EQUAL(mapping.mailbox[0].state, ATTUNE_CMD_POSTED);
    EXPECT_EQUAL(mapping.mailbox[0].done_by, 0);
}

static void attend_with(struct attune_command command) {
    mapping.mailbox[0] = posted(command);
    dm_attend(POINT, ATTUNE_AT_LOCK, ATTUNE_CTL_MAILBOX);
}

/* What a command calls comes by the same safe point. */
static void check_nested(void) {
    called = 0;
    patched = true;
    attend_with((struct attune_command){CALL, AT(LOCK), HERE});
    patched = false;
    EXPECT_EQUAL(called, 1);
    EXPECT_EQUAL(mapping.mailbox[0].state, ATTUNE_CMD_DONE);
}

static jmp_buf out;

static void jump_out(void) { longjmp(out, 1); }

/* A handler leaves a safe point by longjmp: the thread attends to others later. */
static void check_left(void) {
    const struct attune_command command = {NOP, AT(LOCK)};
    interrupt = jump_out;
    if (setjmp(out) == 0)
        attend_with(command);
    EXPECT(interrupt == NULL);
    EXPECT_EQUAL(mapping.mailbox[0].state, ATTUNE_CMD_POSTED);
    for (unsigned i = 0; mapping.mailbox[0].state == ATTUNE_CMD_POSTED; i++) {
        EXPECT(i < 2000);
        dm_attend(POINT, ATTUNE_AT_LOCK, ATTUNE_CTL_MAILBOX);
    }
    attend_with(command);
    EXPECT_EQUAL(mapping.mailbox[0].state, ATTUNE_CMD_DONE);
}

void test_claims(void) {
    struct sigaction action = {.sa_handler = look};
    struct attune_header *memory = make_memory(1, 1, 8);
    mapping = use_memory(memory);
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    for (unsigned i = 0; i < sizeof(all_replaced) / sizeof(all_replaced[0]); i++)
        check_replaced(&all_replaced[i]);
    check_nested();
    check_left();
    free(memory);
}
