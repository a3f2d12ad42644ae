/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Whose call it is that hit a probe, and whether somebody watches it. */
#ifndef ATTUNE_UPROBE_HIT_H
#define ATTUNE_UPROBE_HIT_H

#include "pid_namespace.h"
#include "uprobe_expect.h"
#include "uprobe_maps.h"

/* One hit of a watched process. The call stays in its map until the hit has
 * been taken: it was looked at just now, so that none is recycled later. */
struct hit {
    struct watch *watch;
    struct plan *plan;
    struct call *call; /* its entry, at the return of a pair */
    u64 now;           /* 0: not asked yet */
    u64 own;           /* the point's own value, which min and max are for */
    u64 value;         /* what stands in the record */
    u32 number;        /* of the plan */
    u32 process;
    u32 thread;
    u16 flags;
    bool at_return; /* by a return probe */
    bool is_signed; /* its own value, of one that captures */
};

INLINE struct watch *find_watch(u32 process, u32 point) {
    struct watch_key key = {process, point};
    u32 bucket = watch_bucket(process, point) & (WATCH_BUCKETS - 1), number, *found;
    u64 *guess = bpf_map_lookup_elem(&buckets, &bucket);
    struct watch *watch;

    if (!guess || !*guess)
        return 0;
    number = *guess - 1;
    watch = bpf_map_lookup_elem(&watches, &number);
    if (is_watch(watch, process, point))
        return watch;
    found = bpf_map_lookup_elem(&watched, &key);
    if (!found)
        return 0;
    number = *found;
    watch = bpf_map_lookup_elem(&watches, &number);
    return is_watch(watch, process, point) ? watch : 0;
}

/* What bpf_get_attach_cookie() returns, without its call. */
INLINE u64 attach_cookie(struct registers *ctx, struct task_struct *task) {
    struct bpf_uprobe_multi_run_ctx *run;

    if (!run_ctx_type)
        return bpf_get_attach_cookie(ctx);
    run = bpf_rdonly_cast(task->bpf_ctx, run_ctx_type);
    return run->uprobe->cookie;
}

/* Fills hit and returns true if this process is watched at this point. */
INLINE bool begin(struct registers *ctx, struct hit *hit) {
    struct task_struct *task = bpf_get_current_task_btf();
    struct bpf_pidns_info ids;
    u64 cookie = attach_cookie(ctx, task), start;
    u32 holder = cookie >> 32;

    hit->number = cookie;
    hit->plan = bpf_map_lookup_elem(&plans, &hit->number);
    if (!hit->plan || !hit->plan->point)
        return false;
    ids = current_ids(task);
    if (holder && holder != ids.tgid)
        return false;
    hit->process = ids.tgid;
    hit->thread = ids.pid;
    hit->watch = find_watch(hit->process, hit->plan->point);
    if (!hit->watch && expected && hit->process)
        hit->watch = expected_watch(hit->process, hit->plan->point);
    if (!hit->watch)
        return false;
    start = task->group_leader->start_boottime;
    return start >= hit->watch->start_from && start < hit->watch->start_to;
}

#endif
