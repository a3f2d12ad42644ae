/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Watches that wait for processes which nobody has told of yet. */
#ifndef ATTUNE_UPROBE_EXPECT_H
#define ATTUNE_UPROBE_EXPECT_H

#include "kernel_types.h"
#include "uprobe_maps.h"

INLINE bool is_watch(const struct watch *watch, u32 process, u32 point) {
    return watch && watch->process == process && watch->point == point;
}

/* Gives a process that nobody watches yet a watch that waits for it, and returns
 * its number + 1; 0: there is none. If two of its threads come at once, it may
 * get two of which one is never read: a process begins with one. User space makes
 * the watch known to find_watch() later; until then it is found by its bucket, or
 * here. A function of its own, and few branches, keep the verifier's work small. */
NOINLINE u32 claim_watch(u32 process, u32 point) {
    struct task_struct *task = bpf_get_current_task_btf();
    struct inode *program = task->mm->exe_file->f_inode;
    u32 device = program->i_sb->s_dev, uid = task->cred->uid.val, number = 0;
    u32 bucket = watch_bucket(process, point) & (WATCH_BUCKETS - 1);
    u64 inode = program->i_ino, *first;
    struct watch *watch;

    for (u32 i = 0; i < EXPECTATIONS && i < expected; i++) {
        u32 index = i; /* a key lies in memory, where the verifier loses count */
        struct expectation *e;

        TELL_VERIFIER(index);
        e = bpf_map_lookup_elem(&expectations, &index);
        if (!e)
            return 0;
        if ((e->inode ^ inode) | (e->device ^ device) | (e->uid ^ uid) | (e->point ^ point))
            continue;
        if (e->claimed == process)
            return e->watch + 1;
        if (__sync_val_compare_and_swap(&e->claimed, 0, process))
            continue;
        number = e->watch + 1;
        break;
    }
    if (!number)
        return 0;
    number--;
    watch = bpf_map_lookup_elem(&watches, &number);
    if (!watch)
        return 0;
    watch->start_from = task->group_leader->start_boottime;
    watch->start_to = watch->start_from + 1;
    watch->process = process;
    first = bpf_map_lookup_elem(&buckets, &bucket);
    if (first)
        __sync_val_compare_and_swap(first, 0, (u64)number + 1);
    return number + 1;
}

INLINE struct watch *expected_watch(u32 process, u32 point) {
    u32 number = claim_watch(process, point);
    struct watch *watch;

    if (!number)
        return 0;
    number--;
    watch = bpf_map_lookup_elem(&watches, &number);
    return is_watch(watch, process, point) ? watch : 0;
}

#endif
