/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Who a task is, as the controller's pid namespace numbers it, and how it ended. */
#ifndef ATTUNE_TASKS_H
#define ATTUNE_TASKS_H

#include "kernel_types.h"
#include "pid_namespace.h"

#define MAX_PID_LEVELS 32

/* The number that the wanted namespace gave to pid, 0 if it gave none. */
INLINE s32 number_in_namespace(struct pid *pid) {
    u32 level = READ(pid, level);

    for (u32 i = 0; i < MAX_PID_LEVELS && i <= level; i++) {
        struct upid number = {};

        bpf_probe_read_kernel(&number, sizeof(number), (struct upid *)pid->numbers + i);
        if (READ(number.ns, ns.inum) == pid_namespace_inode)
            return number.nr;
    }
    return 0;
}

INLINE s32 thread_id(struct task_struct *task) {
    return pid_namespace_inode ? number_in_namespace(READ(task, thread_pid)) : READ(task, pid);
}

INLINE s32 process_id(struct task_struct *task) {
    return pid_namespace_inode ? thread_id(READ(task, group_leader)) : READ(task, tgid);
}

/* What a worker of io_uring has: the first from Linux 5.17 on, the second before. */
struct task_struct___worker {
    void *worker_private;
    void *pf_io_worker;
} KERNEL_STRUCT;

/* Whether the kernel's struct has the member: the second argument asks for that. */
#define HAS(from, member) __builtin_preserve_field_info((from)->member, 2)

/* Whether a thread of a process is one that no fork was told of. Up to Linux 6.3 a worker of
 * io_uring takes its flag away before it ends, and leaves what it has: a thread of a fork has none.
 */
INLINE bool is_kernels_worker(struct task_struct *task) {
    struct task_struct___worker *worker = (void *)task;

    if (READ(task, flags) & (PF_IO_WORKER | PF_USER_WORKER))
        return true;
    if (HAS(worker, worker_private))
        return READ(worker, worker_private) != 0;
    if (HAS(worker, pf_io_worker))
        return READ(worker, pf_io_worker) != 0;
    return false;
}

/* As wait_task_zombie() in the kernel computes it. */
INLINE s32 wait_status(struct task_struct *task) {
    struct signal_struct *signal = READ(task, signal);

    if (READ(signal, flags) & SIGNAL_GROUP_EXIT)
        return READ(signal, group_exit_code);
    return READ(READ(task, group_leader), exit_code);
}

#endif
