/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: what they do, and what they refuse. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static struct dm_mapping mapping;

static struct attune_command post(unsigned index, struct attune_command command) {
    command.state = ATTUNE_CMD_POSTED;
    if (command.at == 0)
        command.at = ATTUNE_AT_LOCK;
    mapping.mailbox[index] = command;
    uint32_t word = ATTUNE_CTL_MAILBOX | ATTUNE_CTL_EVENT;
    EXPECT_EQUAL(dm_attend(17, ATTUNE_AT_LOCK, word), ATTUNE_CTL_EVENT);
    return mapping.mailbox[index];
}

static void run_at(unsigned point, uint32_t family) {
    struct dm_safe_point here = {.point = point, .family = family};
    dm_mailbox_run(&here);
}

static uint64_t last_sum;

static uint64_t sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    errno = ERANGE;
    /* a hook inside a command is not an event, and runs no command */
    mapping.controls[17].word = ATTUNE_CTL_EVENT | ATTUNE_CTL_MAILBOX;
    run_at(17, ATTUNE_AT_LOCK);
    hit(17, 1, 2);
    mapping.controls[17].word = 0;
    return last_sum = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
}

static void check_call(void) {
    uint64_t address = (uint64_t)(uintptr_t)sum;
    errno = EDOM;
    struct attune_command done =
        post(0, (struct attune_command){.op = ATTUNE_OP_CALL, .args = {address, 1, 2, 3, 4, 5, 6}});
    EXPECT_EQUAL(errno, EDOM);
    EXPECT_EQUAL(done.state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(done.result, 91);
    EXPECT_EQUAL(last_sum, 91);
    EXPECT_EQUAL(done.error, 0);
    EXPECT_EQUAL(done.done_point, 17);
    EXPECT_EQUAL(done.done_by, dm_syscall(SYS_gettid, 0));
    EXPECT_EQUAL(mapping.header->lost_no_slot, 0);
    EXPECT_EQUAL(mapping.slots[0].head + mapping.slots[0].lost, 0);
    done = post(1, (struct attune_command){.op = ATTUNE_OP_CALL, .args = {8}});
    EXPECT_EQUAL(done.error, EFAULT);
}

static void check_others_wait(void) {
    struct attune_command wait = {.op = ATTUNE_OP_NOP, .at = ATTUNE_AT_ALLOC | ATTUNE_AT_IO};
    EXPECT_EQUAL(post(2, wait).state, ATTUNE_CMD_POSTED);
    wait.at = ATTUNE_AT_LOCK;
    wait.thread = 1;
    EXPECT_EQUAL(post(3, wait).state, ATTUNE_CMD_POSTED);
    wait.thread = (int32_t)dm_syscall(SYS_gettid, 0);
    EXPECT_EQUAL(post(4, wait).state, ATTUNE_CMD_DONE);
    wait.op = 99;
    EXPECT_EQUAL(post(5, wait).error, ENOSYS);
    mapping.mailbox[6].state = ATTUNE_CMD_CLAIMED;
    run_at(17, ATTUNE_AT_LOCK);
    EXPECT_EQUAL(mapping.mailbox[6].state, ATTUNE_CMD_CLAIMED);
    mapping.mailbox[6].state = ATTUNE_CMD_POSTED; /* given back, and given up: for no hook */
    run_at(17, ATTUNE_AT_LOCK);
    EXPECT_EQUAL(mapping.mailbox[6].state, ATTUNE_CMD_POSTED);
}

/* A family that says little about the thread permits little. */
static void check_permitted(void) {
    uint64_t function = (uint64_t)(uintptr_t)sum;
    mapping.mailbox[8] = (struct attune_command){.state = ATTUNE_CMD_POSTED,
                                                 .op = ATTUNE_OP_CALL,
                                                 .at = ATTUNE_AT_PATCH | ATTUNE_AT_GATE,
                                                 .args = {function}};
    mapping.mailbox[9] = (struct attune_command){.state = ATTUNE_CMD_POSTED,
                                                 .op = ATTUNE_OP_GOT,
                                                 .at = ATTUNE_AT_GATE | ATTUNE_AT_PATCH,
                                                 .args = {1}};
    dm_mailbox_run_in_gate(&mapping);
    EXPECT_EQUAL(mapping.mailbox[8].state, ATTUNE_CMD_POSTED);
    EXPECT_EQUAL(mapping.mailbox[9].state, ATTUNE_CMD_POSTED);
    run_at(17, ATTUNE_AT_PATCH);
    EXPECT_EQUAL(mapping.mailbox[8].state, ATTUNE_CMD_POSTED);
    EXPECT_EQUAL(mapping.mailbox[9].state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(mapping.mailbox[9].error, EINVAL);
    mapping.mailbox[8].op = ATTUNE_OP_NOP;
    dm_mailbox_run_in_gate(&mapping);
    EXPECT_EQUAL(mapping.mailbox[8].state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(mapping.mailbox[8].done_point, ATTUNE_POINT_COUNT);
}

/* A command for one point waits for it. */
static void check_one_point(void) {
    uint64_t function = (uint64_t)(uintptr_t)sum;
    mapping.mailbox[10] = (struct attune_command){.state = ATTUNE_CMD_POSTED,
                                                  .op = ATTUNE_OP_CALL,
                                                  .at = ATTUNE_AT_PATCH,
                                                  .args = {function, 1},
                                                  .point = 70 + 1};
    run_at(71, ATTUNE_AT_PATCH);
    run_at(70, ATTUNE_AT_STUB);
    EXPECT_EQUAL(mapping.mailbox[10].state, ATTUNE_CMD_POSTED);
    run_at(70, ATTUNE_AT_PATCH);
    EXPECT_EQUAL(mapping.mailbox[10].state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(mapping.mailbox[10].result, 1);
}

/* A child of vfork is its parent's thread, but no command is for it. The thread
 * sanitizer makes a fork of it. */
static void check_vfork(void) {
#ifdef __SANITIZE_THREAD__
    return;
#endif
    mapping.mailbox[11] = (struct attune_command){
        .state = ATTUNE_CMD_POSTED, .op = ATTUNE_OP_NOP, .at = ATTUNE_AT_LOCK};
    mapping.controls[17].word = ATTUNE_CTL_AGGREGATE;
    pid_t child = vfork();
    if (child == 0) {
        run_at(17, ATTUNE_AT_LOCK);
        hit(17, 1, 2);
        _exit(0);
    }
    EXPECT(child > 0 && waitpid(child, NULL, 0) == child);
    mapping.controls[17].word = 0;
    EXPECT_EQUAL(mapping.mailbox[11].state, ATTUNE_CMD_POSTED);
    EXPECT_EQUAL(mapping.slots[0].aggregates[17].count, 1);
    EXPECT_EQUAL(mapping.slots[0].tid, dm_syscall(SYS_gettid, 0));
    run_at(17, ATTUNE_AT_LOCK);
    EXPECT_EQUAL(mapping.mailbox[11].state, ATTUNE_CMD_DONE);
}

static volatile sig_atomic_t came;

static void come_by(int signal) {
    (void)signal;
    run_at(17, ATTUNE_AT_IO);
    came++;
}

/* A handler comes to a hook, on the stack that it interrupts or on another one. */
static void *call_in_handler(void *stack) {
    struct sigaction action = {.sa_handler = come_by, .sa_flags = stack != NULL ? SA_ONSTACK : 0};
    stack_t other = {.ss_sp = stack, .ss_size = 1 << 16}, none = {.ss_flags = SS_DISABLE};
    struct attune_command *command = &mapping.mailbox[12];
    *command = (struct attune_command){.state = ATTUNE_CMD_POSTED,
                                       .op = ATTUNE_OP_CALL,
                                       .at = ATTUNE_AT_IO,
                                       .args = {(uint64_t)(uintptr_t)sum, 1}};
    EXPECT(stack == NULL || sigaltstack(&other, NULL) == 0);
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    came = 0;
    raise(SIGUSR1);
    EXPECT_EQUAL(came, 1);
    EXPECT_EQUAL(command->state, ATTUNE_CMD_POSTED);
    EXPECT(sigaltstack(&none, NULL) == 0);
    run_at(17, ATTUNE_AT_IO);
    EXPECT_EQUAL(command->state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(command->result, 1);
    return NULL;
}

/* The Makefile has what asks whether memory can be read come by here. */
static unsigned copies;
uint32_t __wrap_dm_memory_copy(void *to, uint64_t address, uint32_t size);
uint32_t __real_dm_memory_copy(void *to, uint64_t address, uint32_t size);

uint32_t __wrap_dm_memory_copy(void *to, uint64_t address, uint32_t size) {
    copies++;
    return __real_dm_memory_copy(to, address, size);
}

#define DEEP (16 * DM_PAGE_SIZE)

/* A main loop deep inside a handler: the stack is searched for the handler's frame once,
 * which takes a question for each page, and then the frame is looked at. */
static void come_by_often(int signal) {
    volatile char deep[DEEP];
    for (unsigned i = 0; i < DEEP; i++)
        deep[i] = 0;
    for (unsigned looks = 0; looks < 100; looks++) {
        copies = 0;
        come_by(signal);
        EXPECT(looks == 0 ? copies >= DEEP / DM_PAGE_SIZE : copies == 1);
    }
    EXPECT_EQUAL(deep[DEEP / 2], 0);
}

static void check_main_loop_in_handler(void) {
    struct sigaction action = {.sa_handler = come_by_often};
    struct attune_command *command = &mapping.mailbox[12];
    *command = (struct attune_command){.state = ATTUNE_CMD_POSTED,
                                       .op = ATTUNE_OP_CALL,
                                       .at = ATTUNE_AT_IO,
                                       .args = {(uint64_t)(uintptr_t)sum, 1}};
    EXPECT(sigaction(SIGUSR2, &action, NULL) == 0);
    raise(SIGUSR2);
    EXPECT_EQUAL(command->state, ATTUNE_CMD_POSTED);
    run_at(17, ATTUNE_AT_IO);
    EXPECT_EQUAL(command->state, ATTUNE_CMD_DONE);
}

static void check_handlers(void) {
    pthread_t thread;
    void *stack = malloc(1 << 16);
    call_in_handler(NULL);
    call_in_handler(stack);
    EXPECT(pthread_create(&thread, NULL, call_in_handler, NULL) == 0);
    pthread_join(thread, NULL);
    EXPECT(pthread_create(&thread, NULL, call_in_handler, stack) == 0);
    pthread_join(thread, NULL);
    free(stack);
    check_main_loop_in_handler();
}

static sigjmp_buf out;

static void jump_out(int signal) {
    (void)signal;
    siglongjmp(out, 1);
}

static uint64_t raised;

static uint64_t raise_alarm(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                            uint64_t f) {
    (void)b, (void)c, (void)d, (void)e, (void)f;
    raise(SIGALRM);
    return raised = a;
}

/* A handler never returns that the signal of a called function leads to: the command is
 * complete before, and the thread measures afterwards. The thread sanitizer calls handlers
 * at places of its own. */
static void check_jumps(void) {
#ifdef __SANITIZE_THREAD__
    return;
#endif
    struct sigaction action = {.sa_handler = jump_out};
    struct attune_command *command = &mapping.mailbox[13];
    uint64_t counted = mapping.slots[0].aggregates[17].count;
    *command = (struct attune_command){.state = ATTUNE_CMD_POSTED,
                                       .op = ATTUNE_OP_CALL,
                                       .at = ATTUNE_AT_IO,
                                       .args = {(uint64_t)(uintptr_t)raise_alarm, 5}};
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0);
    if (sigsetjmp(out, 1) == 0) {
        run_at(17, ATTUNE_AT_IO);
        EXPECT(!"the handler came");
    }
    EXPECT_EQUAL(raised, 5);
    EXPECT_EQUAL(command->state, ATTUNE_CMD_DONE);
    EXPECT_EQUAL(command->result, 5);
    mapping.controls[17].word = ATTUNE_CTL_AGGREGATE;
    hit(17, 1, 2);
    mapping.controls[17].word = 0;
    EXPECT_EQUAL(mapping.slots[0].aggregates[17].count, counted + 1);
}

/* A controller that was killed while its command waited: it is not looked for for ever.
 * The Makefile has so many looks. */
static void check_vain(void) {
    uint32_t *word = &mapping.controls[18].word;
    mapping.mailbox[14] = (struct attune_command){
        .state = ATTUNE_CMD_POSTED, .op = ATTUNE_OP_NOP, .at = ATTUNE_AT_ALLOC};
    *word = ATTUNE_CTL_MAILBOX | ATTUNE_CTL_EVENT;
    for (unsigned looks = 0; looks < 10 * VAIN_LOOKS; looks++) {
        dm_attend(18, ATTUNE_AT_LOCK, *word);
        if (looks % VAIN_LOOKS == 0)
            mapping.header->beat++;
    }
    EXPECT_EQUAL(*word, ATTUNE_CTL_MAILBOX | ATTUNE_CTL_EVENT);
    for (unsigned looks = 0; looks <= VAIN_LOOKS; looks++)
        dm_attend(18, ATTUNE_AT_LOCK, *word);
    EXPECT_EQUAL(*word, ATTUNE_CTL_EVENT);
    *word = 0;
}

void test_mailbox(void) {
    struct attune_header *memory = make_memory(1, 1, 8);
    mapping = use_memory(memory);
    check_call();
    check_others_wait();
    check_permitted();
    check_one_point();
    check_vfork();
    check_handlers();
    check_jumps();
    check_vain();
    memory->detached = 1;
    post(7, (struct attune_command){.op = ATTUNE_OP_NOP});
    EXPECT_EQUAL(mapping.mailbox[7].state, ATTUNE_CMD_POSTED);
    EXPECT_EQUAL(dm_live.delta, 0);
    free(memory);
}
