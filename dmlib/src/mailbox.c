/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the controller, executed by a thread of the program at a hook
 * whose family the command names. */
#include "record.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "signals.h"

typedef uint64_t (*any_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static int call(struct attune_command *command) {
    const uint64_t *args = command->args;
    uint8_t probe;
    if (dm_memory_copy(&probe, args[0], sizeof(probe)) != sizeof(probe))
        return EFAULT;
    int saved = errno;
    any_function function = (any_function)(uintptr_t)args[0];
    command->result = function(args[1], args[2], args[3], args[4], args[5], args[6]);
    errno = saved;
    return 0;
}

static int lead(struct attune_command *command) {
    const uint64_t *args = command->args;
    struct attune_origin origin = {.print = args[1], .relocation = args[6]};
    memcpy(&origin.symbol, &args[7], sizeof(args[7]));
    if (!dm_origin_holds(&origin))
        return ESTALE;
    return dm_memory_store_got(args[0], args[2], args[4], args[5] != 0, &command->result);
}

static int execute(struct attune_command *command) {
    const uint64_t *args = command->args;
    switch (command->op) {
    case ATTUNE_OP_NOP:
        return 0;
    case ATTUNE_OP_CALL:
        return call(command);
    case ATTUNE_OP_STUB:
        return dm_stub_bind(args[0], args[1]);
    case ATTUNE_OP_GOT:
        return lead(command);
    case ATTUNE_OP_MAP:
        return dm_memory_map(args[0], args[1]);
    }
    return ENOSYS;
}

/* Where a family says too little about what the thread is doing. Who names the
 * function knows what may be called at its entry. */
static bool permitted(const struct attune_command *command, uint32_t family) {
    if (family == ATTUNE_AT_GATE)
        return command->op == ATTUNE_OP_NOP || command->op == ATTUNE_OP_MAP;
    if (family == ATTUNE_AT_STOPPED)
        return command->op != ATTUNE_OP_CALL;
    return family != ATTUNE_AT_PATCH || command->op != ATTUNE_OP_CALL || command->point != 0;
}

static bool meant(const struct attune_command *command, const struct dm_safe_point *here,
                  int32_t tid) {
    return (command->at & here->family) != 0 && permitted(command, here->family) &&
           (command->thread == 0 || command->thread == tid) &&
           (command->point == 0 || command->point == here->point + 1);
}

/* A child of vfork runs in its parent's memory as its parent's thread, but descriptors,
 * and what else a command is about, are its own. Asked only when there is a command. */
static bool is_own_thread(int32_t tid) { return dm_syscall(SYS_gettid, 0) == tid; }

static bool is_call(const struct attune_command *command) { return command->op == ATTUNE_OP_CALL; }

/* A function that is called in a handler finds what the handler interrupted, unless it
 * was named where the call is made. */
static bool may_call(const struct attune_command *command) {
    return !is_call(command) || command->point != 0 || !dm_in_handler();
}

static void give_back(struct attune_command *command) {
    __atomic_store_n(&command->state, ATTUNE_CMD_POSTED, __ATOMIC_RELEASE);
}

/* Between a thread's look and its claim another one may have executed the command, and the
 * controller may have put the next one there, or have given the command up: what is claimed
 * is looked at again. */
static bool claim(struct attune_command *command, const struct dm_safe_point *here, int32_t tid) {
    uint32_t posted = ATTUNE_CMD_POSTED;
    if (!__atomic_compare_exchange_n(&command->state, &posted, ATTUNE_CMD_CLAIMED, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    if (!meant(command, here, tid)) {
        give_back(command);
        return false;
    }
    command->result = 0;
    return true;
}

static void settle(struct attune_command *command, const struct dm_safe_point *here, int32_t tid,
                   int error) {
    command->error = error;
    command->done_by = tid;
    command->done_point = here->point;
    __atomic_store_n(&command->state, ATTUNE_CMD_DONE, __ATOMIC_RELEASE);
}

static void refuse(struct attune_command *command, const struct dm_safe_point *here, int32_t tid) {
    if (claim(command, here, tid))
        settle(command, here, tid, EPERM);
}

/* calls: the thread is prepared for a call. */
static void fulfil(struct attune_command *command, const struct dm_safe_point *here, int32_t tid,
                   bool calls) {
    if (!claim(command, here, tid))
        return;
    if (is_call(command) != calls || !may_call(command)) {
        give_back(command);
        return;
    }
    settle(command, here, tid, execute(command));
}

bool dm_hold_signals(uint64_t *before) {
    uint64_t blocked = DM_SIGNALS_BLOCKED;
    return dm_syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, before, sizeof(*before)) == 0;
}

void dm_release_signals(const uint64_t *before) {
    dm_syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof(*before));
}

/* A handler that leaves by longjmp would leave the command claimed, the thread busy, and
 * perhaps the loader locked, for ever: no handler runs meanwhile, but those of faults. Hooks
 * in the command are no events of the program. */
static void fulfil_undisturbed(struct attune_command *command, const struct dm_safe_point *here,
                               int32_t tid, bool calls) {
    struct dm_thread *thread = &dm_thread;
    uint64_t generation, before;
    if (!dm_hold_signals(&before))
        return;
    generation = thread->generation;
    dm_enter(thread);
    thread->in_command = 1;
    dm_compiler_barrier();
    fulfil(command, here, tid, calls);
    dm_compiler_barrier();
    thread->in_command = 0;
    dm_leave(thread, generation);
    dm_release_signals(&before);
}

/* Nor does a cancelled thread end in the function that it calls: it does at the next of its
 * own cancellation points, or in here, once all is as it was. */
static void fulfil_whole(struct attune_command *command, const struct dm_safe_point *here,
                         int32_t tid) {
    int cancels = PTHREAD_CANCEL_ENABLE;
    if (!is_call(command)) {
        fulfil_undisturbed(command, here, tid, false);
        return;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    fulfil_undisturbed(command, here, tid, true);
    pthread_setcancelstate(cancels, NULL);
}

static void run(struct attune_command *mailbox, const struct dm_safe_point *here) {
    int32_t tid = dm_tid();
    for (unsigned i = 0; i < ATTUNE_MAILBOX_COUNT; i++) {
        struct attune_command *command = &mailbox[i];
        if (__atomic_load_n(&command->state, __ATOMIC_ACQUIRE) != ATTUNE_CMD_POSTED ||
            !meant(command, here, tid))
            continue;
        if (dm_confined()) /* before any other system call */
            refuse(command, here, tid);
        else if (is_own_thread(tid) && may_call(command))
            fulfil_whole(command, here, tid);
    }
}

void dm_mailbox_run_in_gate(const struct dm_mapping *mapping) {
    struct dm_safe_point gate = {.point = ATTUNE_POINT_COUNT, .family = ATTUNE_AT_GATE};
    run(mapping->mailbox, &gate);
}

void dm_mailbox_run(const struct dm_safe_point *here) {
    struct dm_thread *thread = &dm_thread;
    struct attune_command *mailbox = dm_live.mapping.mailbox;
    if (mailbox == NULL)
        return;
    if (__atomic_load_n(&dm_parent.header->detached, __ATOMIC_RELAXED) != 0) {
        dm_go_inert();
        return;
    }
    if (thread->generation != DM_BUSY || dm_thread_recover(thread))
        run(mailbox, here);
}

/* Runs wherever the thread was stopped, perhaps in one of our own functions;
 * this is no event of the program, so nothing is counted and nothing recovered. */
uint64_t dm_attend_stopped(void) {
    struct dm_safe_point here = {.point = ATTUNE_POINT_COUNT, .family = ATTUNE_AT_STOPPED};
    struct attune_command *mailbox = dm_live.mapping.mailbox;
    if (mailbox == NULL || dm_thread.generation == DM_BUSY ||
        __atomic_load_n(&dm_parent.header->detached, __ATOMIC_RELAXED) != 0)
        return 0;
    run(mailbox, &here);
    return 1;
}

/* A controller that so many looks of one thread pass without a beat has gone, and
 * nobody will take its command back. They take 5 s at least. */
#ifndef VAIN_LOOKS
#define VAIN_LOOKS 50000000
#endif

static bool is_vain(struct dm_thread *thread) {
    uint32_t beat = __atomic_load_n(&dm_parent.header->beat, __ATOMIC_RELAXED);
    if (thread->looks_beat != beat)
        thread->looks = 0;
    thread->looks_beat = beat;
    return ++thread->looks > VAIN_LOOKS;
}

/* If the controller was only stopped, its command finds no thread, which it reports, and
 * the next one asks again. */
static void look_no_more(unsigned point) {
    __atomic_fetch_and(&dm_control(point)->word, ~ATTUNE_CTL_MAILBOX, __ATOMIC_RELAXED);
}

static void attend(const struct dm_safe_point *here, uint32_t word) {
    if (word & ATTUNE_CTL_REGISTER) {
        dm_child_hook();
        return;
    }
    dm_mailbox_run(here);
    if (dm_live.mapping.header != NULL && is_vain(&dm_thread))
        look_no_more(here->point);
}

/* A thread that a handler took out of this by longjmp seems to be in it for ever: after so
 * many safe points it is taken not to be. */
#define NESTED_POINTS 1024

/* A function of the C library that is called in here may have a point itself, and would bring
 * the thread here again, without end. */
DM_COLD uint32_t dm_attend_at(const struct dm_safe_point *here, uint32_t word) {
    struct dm_thread *thread = &dm_thread;
    if (!thread->attends || ++thread->nested_points > NESTED_POINTS) {
        thread->nested_points = 0;
        thread->attends = 1;
        dm_compiler_barrier();
        attend(here, word);
        dm_compiler_barrier();
        thread->attends = 0;
    }
    return word & ~DM_CTL_ATTEND;
}
