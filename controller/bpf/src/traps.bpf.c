/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Sends SIGTRAP to a thread that comes to an instruction: a breakpoint of
 * chosen threads, where the machine has no debug registers to spare for it.
 */
#include "attune_bpf.h"
#include "kernel_types.h"
#include "pid_namespace.h"
#include "registers.h"

const char program_license[] SEC("license") = "GPL";

/* Set when no thread is to be sent anything any more. */
u32 disarmed;

/* Where a thread was when it was sent the signal. */
struct trap_hit {
    u64 instruction; /* address; 0: it has not been sent it */
    u64 stack;       /* its stack pointer, when it entered the function */
};

/* By thread, as the controller numbers it. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, u32);
    __type(value, struct trap_hit);
} trapped SEC(".maps");

#define TRAP_SIGNAL 5

/* A signal that is blocked would come later, anywhere. */
INLINE bool blocks_trap(struct task_struct *task) {
    return READ(task, blocked.sig[0]) >> (TRAP_SIGNAL - 1) & 1;
}

/* The thread that runs, if it is to stop and was not told yet; else 0. The signal would
 * end one that has no tracer (any more). */
INLINE struct trap_hit *chosen(struct task_struct *task) {
    u32 thread = current_ids(task).pid;
    struct trap_hit *hit;

    if (disarmed || !task->ptrace)
        return 0;
    hit = bpf_map_lookup_elem(&trapped, &thread);
    return hit && !hit->instruction ? hit : 0;
}

INLINE void stop_at(struct registers *ctx, struct trap_hit *hit) {
    if (bpf_send_signal_thread(TRAP_SIGNAL) == 0)
        hit->instruction = program_counter(ctx);
}

SEC("uprobe.multi")
int trap(struct registers *ctx) {
    struct task_struct *task = bpf_get_current_task_btf();
    struct trap_hit *hit = chosen(task);

    if (hit && !blocks_trap(task)) {
        hit->stack = frame_at_entry(ctx);
        stop_at(ctx, hit);
    }
    return 0;
}

/* A call that is not the outermost is passed over; one that was left by a jump is
 * forgotten, when a later one lies above. */
SEC("uprobe.multi")
int trap_entered(struct registers *ctx) {
    struct trap_hit *hit = chosen(bpf_get_current_task_btf());
    u64 frame = frame_at_entry(ctx);

    if (hit && frame >= hit->stack)
        hit->stack = frame;
    return 0;
}

SEC("uretprobe.multi")
int trap_left(struct registers *ctx) {
    struct task_struct *task = bpf_get_current_task_btf();
    struct trap_hit *hit = chosen(task);

    if (hit && hit->stack == frame_at_return(ctx) && !blocks_trap(task))
        stop_at(ctx, hit);
    return 0;
}
