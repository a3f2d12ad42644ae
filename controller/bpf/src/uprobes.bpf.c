/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Counts and records calls of probed functions. A probe sits in a file and so
 * fires in every process that maps it; the first thing a program does is look
 * whether this process is watched at this point, and leave if not.
 *
 * The price of a hit is that of the trap and, here, of each call of a helper:
 * about 20 ns with the mitigations of today's processors. Whatever can be had
 * without one is: array maps are inlined by the verifier, the task is walked
 * by typed pointers, and the ring of records is our own.
 */
#include "attune_bpf.h"

#include "attune/program.h"
#include "kernel_types.h"
#include "keyed.h"
#include "plan.h"
#include "ring.h"
#include "watch.h"

#ifndef CAPTURES
#define CAPTURES 0
#endif

#if CAPTURES
#include "capture.h"
#endif

const char program_license[] SEC("license") = "GPL";

struct watch_key {
    u32 process;
    u32 point;
};

/* A record as it travels: the word of the ring, then struct attune_record. */
struct uprobe_record {
    u64 word;
    u64 time; /* CLOCK_MONOTONIC, ns */
    u16 point;
    u16 flags; /* RECORD_* */
    u32 thread;
    u64 value;
    u64 extra; /* RECORD_DURATION: ns spent in the call */
};

#define RECORD_DURATION (1u << 0)
#define RECORD_SAMPLED (1u << 1)

/* A record with what was captured. User space makes continuations of the rest.
 * The value of a string is its length, and ATTUNE_STRING_CUT; the bytes of all
 * strings follow one another, each in as many words as it needs. */
struct captured_record {
    struct uprobe_record record;
    u32 captures;
    u32 kinds;
    u64 value[ATTUNE_CAPTURES];
    u8 strings[];
};

#define ALL_STRINGS (RING_RECORD_MAX - sizeof(struct captured_record) - ATTUNE_STRING - 16)

/* bpf2go emits the types that some global refers to. */
const struct watch *unused_watch __attribute__((unused));
const struct plan *unused_plan __attribute__((unused));
const struct operand *unused_operand __attribute__((unused));
const struct aggregate *unused_aggregate __attribute__((unused));
const struct keyed *unused_keyed __attribute__((unused));
const struct ring *unused_ring __attribute__((unused));
const struct captured_record *unused_record __attribute__((unused));

/* The controller's pid namespace, 0 and 0 for the initial one. Process and
 * thread ids are as seen from there. */
const volatile u64 pid_namespace_device = 0;
const volatile u64 pid_namespace_inode = 0;
/* Number of struct bpf_uprobe_multi_run_ctx in the kernel's type information; 0:
 * the attach cookie can be had by the helper only. */
const volatile u32 run_ctx_type = 0;
/* Bytes of the ring, a power of two. */
const volatile u32 ring_size = 2 * 1024 * 1024;

/* (user) number of the interval; its parity chooses the extremes in use. */
u32 interval;
/* Returns whose call was not seen, or was forgotten for newer ones. */
u64 unpaired_returns;

/* What the probes find where they stand, by attach cookie. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1024);
    __type(key, u32);
    __type(value, struct plan);
} plans SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1024);
    __type(key, u32);
    __type(value, struct watch);
} watches SEC(".maps");

/* Some watch of each bucket, as its number + 1; 0: no watch falls into it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, WATCH_BUCKETS);
    __type(key, u32);
    __type(value, u64);
} buckets SEC(".maps");

/* Which process is watched at which point: number of the watch. Asked where a
 * bucket holds several. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC); /* only user space inserts */
    __uint(max_entries, 1024);
    __type(key, struct watch_key);
    __type(value, u32);
} watched SEC(".maps");

/* Programs of captures of watches that have one. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 256);
    __type(key, u32);
    __type(value, struct attune_program);
} programs SEC(".maps");

struct key_table {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
    __uint(max_entries, 2);
    __type(key, u32);
    __type(value, struct keyed);
};

/* Tables of keys, each made when a watch needs it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 256);
    __type(key, u32);
    __array(values, struct key_table);
} key_tables SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct ring);
} record_ring SEC(".maps");

/* ring_size bytes and room for the longest record; user space gives the size. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(u32));
    __uint(value_size, 2 * 1024 * 1024 + RING_RECORD_MAX);
} ring_memory SEC(".maps");

#define STACK_FRAMES 32

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 1024);
    __uint(key_size, sizeof(u32));
    __uint(value_size, STACK_FRAMES * sizeof(u64));
} stacks SEC(".maps");

struct call_key {
    u64 thread;
    u64 frame;
    u64 plan;
};

struct call {
    u64 entered;
    u64 value;
    u64 parameters[PARAMETERS];
};

/* Calls under way at points with both entry and exit. Least recently used
 * ones make room: those of threads that ended, or left by longjmp. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 8192);
    __type(key, struct call_key);
    __type(value, struct call);
} calls SEC(".maps");

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
};

INLINE void current_ids(struct hit *hit, struct task_struct *task) {
    struct bpf_pidns_info ids = {};

    if (!pid_namespace_inode) {
        hit->process = task->tgid;
        hit->thread = task->pid;
        return;
    }
    /* Leaves zeros, which nobody watches, if it has no number there. */
    bpf_get_ns_current_pid_tgid(pid_namespace_device, pid_namespace_inode, &ids, sizeof(ids));
    hit->process = ids.tgid;
    hit->thread = ids.pid;
}

INLINE bool is_watch(const struct watch *watch, u32 process, u32 point) {
    return watch && watch->process == process && watch->point == point;
}

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
    u64 start;

    hit->number = attach_cookie(ctx, task);
    hit->plan = bpf_map_lookup_elem(&plans, &hit->number);
    if (!hit->plan || !hit->plan->point)
        return false;
    current_ids(hit, task);
    hit->watch = find_watch(hit->process, hit->plan->point);
    if (!hit->watch)
        return false;
    start = task->group_leader->start_boottime;
    return start >= hit->watch->start_from && start < hit->watch->start_to;
}

/* How many records have one time at most. */
#define RECORDS_OF_A_TIME 16

/* The time of one of the last records in this tick of the kernel's clock, or the
 * time now. The clock takes 50 ns to read, its tick nothing. Writers that meet
 * here may give a record the time of the one behind it. */
INLINE u64 coarse_time(struct ring *ring) {
    u64 tick = bpf_jiffies64(), now;

    if (*(volatile u64 *)&ring->tick == tick && ring->records < RECORDS_OF_A_TIME) {
        ring->records++;
        return *(volatile u64 *)&ring->time;
    }
    now = bpf_ktime_get_ns();
    *(volatile u64 *)&ring->time = now;
    *(volatile u64 *)&ring->tick = tick;
    ring->records = 1;
    return now;
}

INLINE u64 time_of(struct hit *hit, struct ring *ring) {
    if (hit->now)
        return hit->now;
    return hit->watch->flags & WATCH_COARSE_TIME ? coarse_time(ring) : bpf_ktime_get_ns();
}

/* Reserves room for a record and fills in all but its first word. */
INLINE struct uprobe_record *reserve(struct hit *hit, u32 length) {
    u32 zero = 0;
    struct ring *ring = bpf_map_lookup_elem(&record_ring, &zero);
    u8 *memory = bpf_map_lookup_elem(&ring_memory, &zero);
    struct uprobe_record *record;
    u64 position;

    if (!ring || !memory)
        return 0;
    if (!ring_reserve(ring, ring_size, length, &position)) {
        __sync_fetch_and_add(&hit->watch->lost, 1);
        return 0;
    }
    record = (struct uprobe_record *)(memory + (position & (ring_size - 1)));
    record->time = time_of(hit, ring);
    record->point = hit->plan->point;
    record->flags = hit->flags | (hit->watch->sample_mask ? RECORD_SAMPLED : 0);
    record->thread = hit->thread;
    record->value = hit->value;
    record->extra = hit->flags & RECORD_DURATION ? hit->own : 0;
    return record;
}

#if CAPTURES
#include "take_captured.h"
#endif

/* Takes a hit of a point that captures nothing. */
INLINE void take_plain(struct hit *hit) {
    struct watch *watch = hit->watch;
    struct uprobe_record *record;
    u64 before = watch_count(watch);

    if (watch->flags & WATCH_AGGREGATE)
        aggregate_add(&watch->sums, hit->own, false, interval);
    if (!watch_delivers(watch, before))
        return;
    record = reserve(hit, sizeof(*record));
    if (record)
        ring_commit(&record->word, RING_WORD(sizeof(*record), hit->process));
}

/* Takes a hit whose own value is known. */
INLINE void take(struct registers *ctx __attribute__((unused)), struct hit *hit) {
    if (!watch_wants(hit->watch, hit->own))
        return;
#if CAPTURES
    if (hit->watch->program) {
        take_captured(ctx, hit);
        return;
    }
#endif
    take_plain(hit);
}

/* An argument of a static probe, which may be anywhere; 0 if it cannot be read. */
static NOINLINE u64 operand_value(struct registers *ctx, const struct operand *operand) {
    u64 registers[REGISTERS], value = 0;

    save_registers(ctx, registers);
    read_operand(registers, operand, &value);
    return value;
}

/* The point's own value at an entry. */
INLINE u64 own_value(struct registers *ctx, const struct plan *plan) {
    if (plan->value.kind == OPERAND_REGISTER && plan->value.size == 8)
        return register_value(ctx, plan->value.base);
    return operand_value(ctx, &plan->value);
}

SEC("uprobe.multi")
int at_entry(struct registers *ctx) {
    struct hit hit = {};

    if (begin(ctx, &hit)) {
        hit.own = hit.value = own_value(ctx, hit.plan);
        take(ctx, &hit);
    }
    return 0;
}

/* Return instructions of Go code are probed by this one as well. */
SEC("uretprobe.multi")
int at_exit(struct registers *ctx) {
    struct hit hit = {};

    if (begin(ctx, &hit)) {
        hit.at_return = !(hit.plan->flags & PLAN_INSTRUCTION);
        hit.own = hit.value = return_value(ctx);
        take(ctx, &hit);
    }
    return 0;
}

/* Threads are told apart by their global ids: they cost less to find. */
INLINE void call_of(struct call_key *key, struct hit *hit, u64 frame) {
    key->thread = bpf_get_current_task_btf()->pid;
    key->frame = frame;
    key->plan = hit->number;
}

SEC("uprobe.multi")
int pair_entry(struct registers *ctx) {
    struct hit hit = {};
    struct call_key key;
    struct call call = {};

    if (!begin(ctx, &hit))
        return 0;
    call_of(&key, &hit, frame_at_entry(ctx));
    call.value = own_value(ctx, hit.plan);
    if (CAPTURES && hit.watch->program)
        save_parameters(ctx, call.parameters);
    call.entered = bpf_ktime_get_ns();
    bpf_map_update_elem(&calls, &key, &call, BPF_ANY);
    return 0;
}

SEC("uretprobe.multi")
int pair_exit(struct registers *ctx) {
    struct hit hit = {.now = bpf_ktime_get_ns(), .at_return = true};
    struct call_key key;

    if (!begin(ctx, &hit))
        return 0;
    call_of(&key, &hit, frame_at_return(ctx));
    hit.call = bpf_map_lookup_elem(&calls, &key);
    if (!hit.call) {
        __sync_fetch_and_add(&unpaired_returns, 1);
        return 0;
    }
    if (hit.plan->flags & PLAN_DURATION) {
        hit.own = hit.now - hit.call->entered;
        hit.value = hit.call->value;
        hit.flags = RECORD_DURATION;
    } else {
        hit.own = hit.value = return_value(ctx);
    }
    take(ctx, &hit);
    bpf_map_delete_elem(&calls, &key);
    return 0;
}
