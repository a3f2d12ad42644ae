/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The pid namespace whose numbers the programs speak. */
#ifndef ATTUNE_PID_NAMESPACE_H
#define ATTUNE_PID_NAMESPACE_H

#include "kernel_types.h"

/* The controller's pid namespace, 0 and 0 for the initial one. Ids of processes and
 * threads, in maps and in what is told, are as seen from there. */
const volatile u64 pid_namespace_device = 0;
const volatile u64 pid_namespace_inode = 0;

/* Ids of the thread that runs, which is task; zeros, which nobody asks for, if it has no
 * number there. */
INLINE struct bpf_pidns_info current_ids(struct task_struct *task) {
    struct bpf_pidns_info ids = {};

    if (pid_namespace_inode) {
        bpf_get_ns_current_pid_tgid(pid_namespace_device, pid_namespace_inode, &ids, sizeof(ids));
    } else {
        ids.pid = task->pid;
        ids.tgid = task->tgid;
    }
    return ids;
}

#endif
