/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Counts and records calls of probed functions. A probe sits in a file and so
 * fires in every process that maps it; the first thing a program does is look
 * whether this process is watched at this point, and leave if not.
 *
 * The attach cookie says which point fired (bits 0-15) and which register
 * holds the value (bits 16-23), so that one program serves all points.
 */
#include "attune_bpf.h"
#include "registers.h"
#include "watch.h"

const char program_license[] SEC("license") = "GPL";

struct watch_key {
    u32 process;
    u32 point;
};

/* A record as it travels: struct attune_record of DMLib, then the process. */
struct uprobe_record {
    u64 time; /* CLOCK_MONOTONIC, ns */
    u16 point;
    u16 flags; /* RECORD_* */
    u32 thread;
    u64 value;
    u64 extra; /* RECORD_DURATION: ns spent in the call */
    u32 process;
    u32 reserved;
};

#define RECORD_DURATION (1u << 0)
#define RECORD_SAMPLED (1u << 1)

/* bpf2go emits the types that some global refers to. */
const struct watch *unused_watch __attribute__((unused));
const struct uprobe_record *unused_record __attribute__((unused));

/* The controller's pid namespace, 0 and 0 for the initial one. Process and
 * thread ids are as seen from there. */
const volatile u64 pid_namespace_device = 0;
const volatile u64 pid_namespace_inode = 0;

/* (user) number of the interval; its parity chooses the extremes in use. */
u32 interval;
/* Records that found the ring full. */
u64 lost_records;
/* Returns whose call was not seen, or was forgotten for newer ones. */
u64 unpaired_returns;

/* Which process is watched at which point, and where: index of watches. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC); /* only user space inserts */
    __uint(max_entries, 1024);
    __type(key, struct watch_key);
    __type(value, u32);
} watched SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1024);
    __type(key, u32);
    __type(value, struct watch);
} watches SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1024 * 1024);
} record_ring SEC(".maps");

struct call_key {
    u64 thread;
    u64 frame;
    u64 point;
};

struct call {
    u64 entered;
    u64 value;
};

/* Calls under way at points with both entry and exit. Least recently used
 * ones make room: those of threads that ended, or left by longjmp. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 8192);
    __type(key, struct call_key);
    __type(value, struct call);
} calls SEC(".maps");

struct hit {
    struct watch *watch;
    u64 cookie;
    u32 process;
    u32 thread;
};

#define HIT_POINT(hit) ((u16)(hit)->cookie)
#define HIT_REGISTER(hit) ((u32)((hit)->cookie >> 16) & 0xff)

INLINE void current_ids(struct hit *hit) {
    struct bpf_pidns_info ids = {};
    u64 both;

    if (pid_namespace_inode) {
        /* Leaves zeros, which nobody watches, if it has no number there. */
        bpf_get_ns_current_pid_tgid(pid_namespace_device, pid_namespace_inode, &ids, sizeof(ids));
        hit->process = ids.tgid;
        hit->thread = ids.pid;
        return;
    }
    both = bpf_get_current_pid_tgid();
    hit->process = both >> 32;
    hit->thread = (u32)both;
}

/* Fills hit and returns true if this process is watched at this point. */
INLINE bool find_watch(struct registers *ctx, struct hit *hit) {
    struct watch_key key;
    u32 *index;

    current_ids(hit);
    hit->cookie = bpf_get_attach_cookie(ctx);
    key.process = hit->process;
    key.point = HIT_POINT(hit);
    index = bpf_map_lookup_elem(&watched, &key);
    if (!index)
        return false;
    hit->watch = bpf_map_lookup_elem(&watches, index);
    return hit->watch != 0;
}

INLINE void deliver(struct hit *hit, u64 now, u64 value, u64 extra, u16 flags) {
    struct uprobe_record *record;

    record = bpf_ringbuf_reserve(&record_ring, sizeof(*record), 0);
    if (!record) {
        __sync_fetch_and_add(&hit->watch->lost, 1);
        __sync_fetch_and_add(&lost_records, 1);
        return;
    }
    record->time = now;
    record->point = HIT_POINT(hit);
    record->flags = flags | (hit->watch->sample_mask ? RECORD_SAMPLED : 0);
    record->thread = hit->thread;
    record->value = value;
    record->extra = extra;
    record->process = hit->process;
    record->reserved = 0;
    /* Waking the reader would cost the probed thread 5 us: it polls. */
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Takes a hit whose measured value this is. */
INLINE void take(struct hit *hit, u64 measured) {
    if (!watch_wants(hit->watch, measured))
        return;
    if (watch_delivers(hit->watch, watch_take(hit->watch, measured, interval)))
        deliver(hit, bpf_ktime_get_ns(), measured, 0, 0);
}

SEC("uprobe.multi")
int at_entry(struct registers *ctx) {
    struct hit hit = {};

    if (find_watch(ctx, &hit))
        take(&hit, register_value(ctx, HIT_REGISTER(&hit)));
    return 0;
}

SEC("uretprobe.multi")
int at_exit(struct registers *ctx) {
    struct hit hit = {};

    if (find_watch(ctx, &hit))
        take(&hit, return_value(ctx));
    return 0;
}

/* Threads are told apart by their global ids: they cost less to find. */
INLINE void call_of(struct call_key *key, struct hit *hit, u64 frame) {
    key->thread = bpf_get_current_pid_tgid();
    key->frame = frame;
    key->point = HIT_POINT(hit);
}

SEC("uprobe.multi")
int pair_entry(struct registers *ctx) {
    struct hit hit = {};
    struct call_key key;
    struct call call;

    if (!find_watch(ctx, &hit))
        return 0;
    call_of(&key, &hit, frame_at_entry(ctx));
    call.value = register_value(ctx, HIT_REGISTER(&hit));
    call.entered = bpf_ktime_get_ns();
    bpf_map_update_elem(&calls, &key, &call, BPF_ANY);
    return 0;
}

SEC("uretprobe.multi")
int pair_exit(struct registers *ctx) {
    u64 now = bpf_ktime_get_ns(), duration;
    struct hit hit = {};
    struct call_key key;
    struct call *found, call;

    if (!find_watch(ctx, &hit))
        return 0;
    call_of(&key, &hit, frame_at_return(ctx));
    found = bpf_map_lookup_elem(&calls, &key);
    if (!found) {
        __sync_fetch_and_add(&unpaired_returns, 1);
        return 0;
    }
    call = *found;
    bpf_map_delete_elem(&calls, &key);
    duration = now - call.entered;
    if (!watch_wants(hit.watch, duration))
        return 0;
    if (watch_delivers(hit.watch, watch_take(hit.watch, duration, interval)))
        deliver(&hit, now, call.value, duration, RECORD_DURATION);
    return 0;
}
