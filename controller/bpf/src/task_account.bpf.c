/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Accounts for a tree of processes: what each of its threads took is added up
 * when the kernel is done with the thread (taken.h), so that nothing is too short
 * to be seen.
 */
#define ATTUNE_ACCOUNT
#include "account.h"
#include "attune_bpf.h"
#include "kernel_types.h"
#include "tasks.h"

const char program_license[] SEC("license") = "GPL";

/* Of all processes. */
struct account_totals {
    struct taken taken;
    u64 processes; /* that came                                        */
    u64 alive;     /* that have a thread which has not ended           */
    u64 peak;      /* of alive                                         */
    u64 done;      /* that are done with                               */
};

const struct process_account *unused_process_account __attribute__((unused));

struct account_totals totals;
/* Processes that found the ring buffer full: they are in totals. */
u64 lost_processes;
/* Children that found no room: they and theirs are in nothing. */
u64 lost_members;

/* Threads, as the controller has them, whose children begin a tree. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8);
    __type(key, s32);
    __type(value, u32);
} starters SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 2 * 1024 * 1024);
} ended_ring SEC(".maps");

INLINE bool starts_tree(struct task_struct *parent) {
    s32 id = thread_id(parent);

    return bpf_map_lookup_elem(&starters, &id) != 0;
}

#define PEAK_TRIES 8

INLINE void count_alive(void) {
    u64 alive = __sync_fetch_and_add(&totals.alive, 1) + 1, peak;

    for (u32 i = 0; i < PEAK_TRIES; i++) {
        peak = totals.peak;
        if (alive <= peak || __sync_val_compare_and_swap(&totals.peak, peak, alive) == peak)
            return;
    }
}

SEC("raw_tp/sched_process_fork")
int account_fork(u64 *ctx) {
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    s32 of = READ(parent, tgid), tgid = READ(child, tgid);
    struct process_account *known = bpf_map_lookup_elem(&processes, &of);
    struct process_account fresh = {.threads = 1, .living = 1};

    if (of == tgid) { /* a thread */
        if (known) {
            __sync_fetch_and_add(&known->living, 1);
            __sync_fetch_and_add(&known->threads, 1);
        }
        return 0;
    }
    if (!known && !starts_tree(parent))
        return 0;
    fresh.start_time = READ(child, start_boottime);
    fresh.pid = process_id(child);
    fresh.parent = process_id(READ(child, real_parent));
    bpf_probe_read_kernel(fresh.comm, sizeof(fresh.comm), &child->comm);
    if (bpf_map_update_elem(&processes, &tgid, &fresh, BPF_ANY)) {
        __sync_fetch_and_add(&lost_members, 1);
        return 0;
    }
    __sync_fetch_and_add(&totals.processes, 1);
    count_alive();
    return 0;
}

SEC("raw_tp/sched_process_exec")
int account_exec(u64 *ctx) {
    struct task_struct *task = (struct task_struct *)ctx[0];
    s32 tgid = READ(task, tgid);
    struct process_account *known = bpf_map_lookup_elem(&processes, &tgid);

    if (known && __sync_fetch_and_add(&known->execs, 1) == 0)
        known->before_exec = READ(READ(task, signal), maxrss);
    return 0;
}

/*
 * The peak of a process' own memory, in pages; 0 if it is not known. What the
 * kernel keeps for wait4(2) has the image in it that executed the first program:
 * after vfork that is the parent's. Where it is more than the process' own, only
 * the memory itself tells, which is still there from Linux 6.16 on.
 */
INLINE u64 resident_peak(struct process_account *process, struct task_struct *task) {
    u64 peak = READ(READ(task, signal), maxrss), now = 0;
    struct mm_struct *mm = READ(task, mm);
    s64 part;

    if (!process->execs || peak > process->before_exec)
        return peak;
    if (!mm || process->execs > 1)
        return 0;
    part = READ(mm, rss_stat[0].count);
    now += part > 0 ? part : 0;
    part = READ(mm, rss_stat[1].count);
    now += part > 0 ? part : 0;
    part = READ(mm, rss_stat[3].count);
    now += part > 0 ? part : 0;
    peak = READ(mm, hiwater_rss);
    return peak > now ? peak : now;
}

INLINE u64 virtual_peak(struct task_struct *task) {
    struct mm_struct *mm = READ(task, mm);
    u64 peak, now;

    if (!mm)
        return 0;
    peak = READ(mm, hiwater_vm);
    now = READ(mm, total_vm);
    return peak > now ? peak : now;
}

SEC("raw_tp/sched_process_exit")
int account_exit(u64 *ctx) {
    struct task_struct *task = (struct task_struct *)ctx[0];
    struct process_account *known;
    s32 tgid;

    if (READ(READ(task, signal), live.counter) > 0)
        return 0; /* other threads live on */
    tgid = READ(task, tgid);
    known = bpf_map_lookup_elem(&processes, &tgid);
    /* Two last threads may both see that none lives. */
    if (!known || __sync_fetch_and_add(&known->ended, 1))
        return 0;
    known->end_time = bpf_ktime_get_boot_ns();
    known->status = wait_status(task);
    known->resident_peak = resident_peak(known, task);
    known->virtual_peak = virtual_peak(task);
    bpf_probe_read_kernel(known->comm, sizeof(known->comm), &task->comm);
    __sync_fetch_and_sub(&totals.alive, 1);
    return 0;
}

INLINE void emit(struct process_account *process) {
    struct process_account *out = bpf_ringbuf_reserve(&ended_ring, sizeof(*out), 0);

    if (!out) {
        __sync_fetch_and_add(&lost_processes, 1);
        return;
    }
    *out = *process;
    bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
}

SEC("raw_tp/sched_switch")
int account_switch(u64 *ctx) {
    struct task_struct *task = (struct task_struct *)ctx[1];
    struct process_account *known;
    s32 tgid;

    if (!is_done_with(task))
        return 0;
    tgid = READ(task, tgid);
    known = bpf_map_lookup_elem(&processes, &tgid);
    if (!known)
        return 0;
    add_taken(&known->taken, task);
    add_taken(&totals.taken, task);
    if (is_kernels_worker(task) || __sync_fetch_and_sub(&known->living, 1) != 1)
        return 0;
    emit(known);
    bpf_map_delete_elem(&processes, &tgid);
    __sync_fetch_and_add(&totals.done, 1);
    return 0;
}
