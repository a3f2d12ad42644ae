/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the controller, executed by a thread of the program at a hook
 * whose family the command names. */
#include "record.h"

#include <errno.h>

typedef uint64_t (*any_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static int call(struct attune_command *command) {
    const uint64_t *args = command->args;
    uint64_t probe;
    if (dm_memory_load(args[0], 1, &probe) != 0)
        return EFAULT;
    int saved = errno;
    any_function function = (any_function)(uintptr_t)args[0];
    command->result = function(args[1], args[2], args[3], args[4], args[5], args[6]);
    errno = saved;
    return 0;
}

static int execute(struct attune_command *command) {
    const uint64_t *args = command->args;
    switch (command->op) {
    case ATTUNE_OP_NOP:
        return 0;
    case ATTUNE_OP_CALL:
        return call(command);
    case ATTUNE_OP_LOAD:
        return dm_memory_load(args[0], args[1], &command->result);
    case ATTUNE_OP_STORE:
        return dm_memory_store(args[0], args[1], args[2], args[3] != 0, args[4], &command->result);
    case ATTUNE_OP_STUB:
        return dm_stub_bind(args[0], args[1]);
    case ATTUNE_OP_GOT:
        return dm_memory_store_got(args[0], args[2], args[3] != 0, args[4], args[5] != 0,
                                   &command->result);
    case ATTUNE_OP_MAP:
        return dm_memory_map(args[0], args[1]);
    }
    return ENOSYS;
}

/* Where a family says too little about what the thread is doing. */
static bool permitted(uint32_t op, uint32_t family) {
    if (family == ATTUNE_AT_GATE)
        return op == ATTUNE_OP_NOP || op == ATTUNE_OP_MAP;
    return family != ATTUNE_AT_PATCH || op != ATTUNE_OP_CALL;
}

static bool claim(struct attune_command *command, uint32_t family, int32_t tid) {
    uint32_t posted = ATTUNE_CMD_POSTED;
    if (__atomic_load_n(&command->state, __ATOMIC_ACQUIRE) != ATTUNE_CMD_POSTED)
        return false;
    if ((command->at & family) == 0 || !permitted(command->op, family) ||
        (command->thread != 0 && command->thread != tid))
        return false;
    return __atomic_compare_exchange_n(&command->state, &posted, ATTUNE_CMD_CLAIMED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void run(struct attune_command *mailbox, unsigned point, uint32_t family) {
    int32_t tid = (int32_t)dm_syscall(SYS_gettid, 0);
    for (unsigned i = 0; i < ATTUNE_MAILBOX_COUNT; i++) {
        struct attune_command *command = &mailbox[i];
        if (!claim(command, family, tid))
            continue;
        command->result = 0;
        command->error = execute(command);
        command->done_by = tid;
        command->done_at = dm_ticks();
        command->done_point = point;
        __atomic_store_n(&command->state, ATTUNE_CMD_DONE, __ATOMIC_RELEASE);
    }
}

void dm_mailbox_run_in_gate(const struct dm_mapping *mapping) {
    run(mapping->mailbox, ATTUNE_POINT_COUNT, ATTUNE_AT_GATE);
}

void dm_mailbox_run(unsigned point, uint32_t family) {
    struct dm_thread *thread = &dm_thread;
    struct attune_command *mailbox = dm_live.mapping.mailbox;
    if (mailbox == NULL)
        return;
    if (__atomic_load_n(&dm_live.mapping.header->detached, __ATOMIC_RELAXED) != 0) {
        dm_go_inert();
        return;
    }
    if (thread->generation == DM_BUSY && !dm_thread_recover(thread))
        return;
    uint64_t generation = thread->generation;
    dm_enter(thread);
    thread->in_command = 1;
    dm_compiler_barrier();
    run(mailbox, point, family);
    dm_compiler_barrier();
    thread->in_command = 0;
    dm_leave(thread, generation);
}

DM_COLD uint32_t dm_attend(unsigned point, uint32_t family, uint32_t word) {
    if (word & ATTUNE_CTL_REGISTER) {
        dm_child_hook();
        return 0;
    }
    dm_mailbox_run(point, family);
    return word & ~DM_CTL_ATTEND;
}
