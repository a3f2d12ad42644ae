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
#ifndef CAPTURES
#define CAPTURES 0
#endif

#define ATTUNE_CALLS
#include "uprobe_record.h"

#if CAPTURES
#include "capture.h"

#include "take_captured.h"
#endif

const char program_license[] SEC("license") = "GPL";

/* Takes a hit of a point that captures nothing. */
INLINE void take_plain(struct hit *hit) {
    struct watch *watch = hit->watch;
    struct uprobe_record *record;

    if (!(watch->flags & WATCH_EVENT)) {
        attune_add(&watch->sums, hit->own, false, interval);
        return;
    }
    if (!watch_delivers(watch, watch_count(watch)))
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
        if (take_captured(ctx, hit))
            add_by_text(ctx, hit);
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

/* The kernel sees so many returns of a thread that are yet to come (MAX_URETPROBE_DEPTH). */
#define RETURNS 64

/* Whether the kernel will see the call return that begins now. */
INLINE bool is_followed(void) {
    struct uprobe_task *uprobes = bpf_get_current_task_btf()->utask;

    return !uprobes || uprobes->depth < RETURNS;
}

/* Whether a function was reached by the jump of another one, in whose place it returns: its
 * return address is what the kernel has made of that one's. */
INLINE bool is_jump(struct registers *ctx) {
    struct xol_area *area = bpf_get_current_task_btf()->mm->uprobes_state.xol_area;

    return area && return_address(ctx) == area->vaddr;
}

/* Threads are told apart by their global ids: they cost less to find. */
INLINE void call_of(struct call_key *key, struct hit *hit, u64 frame) {
    key->thread = bpf_get_current_task_btf()->pid;
    key->frame = frame;
    key->plan = hit->number;
    key->jump = 0;
}

/* Remembers a call that begins. One without room, of which there is no word, counts as lost at
 * its return. */
INLINE void remember(struct registers *ctx, struct call_key *key, const struct call *call) {
    struct call *called;

    if (!bpf_map_update_elem(&calls, key, call, BPF_NOEXIST))
        return;
    called = bpf_map_lookup_elem(&calls, key);
    if (!called)
        return;
    if (is_jump(ctx))
        key->jump = ++called->jumps;
    /* else that one was left, by longjmp as a rule, and its stack is used again */
    bpf_map_update_elem(&calls, key, call, BPF_ANY);
}

/* Finds a call that ends: of those at one frame the last that began. */
INLINE struct call *recall(struct call_key *key) {
    struct call *called = bpf_map_lookup_elem(&calls, key);

    if (!called || !called->jumps)
        return called;
    key->jump = called->jumps--;
    return bpf_map_lookup_elem(&calls, key);
}

SEC("uprobe.multi")
int pair_entry(struct registers *ctx) {
    struct hit hit = {};
    struct call_key key;
    struct call call = {};

    if (!begin(ctx, &hit))
        return 0;
    if (!is_followed()) {
        lose(&hit);
        return 0;
    }
    call_of(&key, &hit, frame_at_entry(ctx));
    call.value = own_value(ctx, hit.plan);
    call.era = hit.watch->era;
    if (CAPTURES && hit.watch->program)
        save_parameters(ctx, call.parameters);
    call.entered = bpf_ktime_get_ns();
    remember(ctx, &key, &call);
    return 0;
}

/* Takes the end of a call that has begun. */
INLINE void take_call(struct registers *ctx, struct hit *hit) {
    if (hit->plan->flags & PLAN_DURATION) {
        hit->own = hit->now - hit->call->entered;
        hit->value = hit->call->value;
        hit->flags = RECORD_DURATION;
    } else {
        hit->own = hit->value = return_value(ctx);
    }
    take(ctx, hit);
}

SEC("uretprobe.multi")
int pair_exit(struct registers *ctx) {
    struct hit hit = {.now = bpf_ktime_get_ns(), .at_return = true};
    struct call_key key;

    if (!begin(ctx, &hit))
        return 0;
    call_of(&key, &hit, frame_at_return(ctx));
    hit.call = recall(&key);
    if (!hit.call) {
        lose(&hit); /* forgotten for newer ones, or perhaps begun unwatched */
        return 0;
    }
    if (hit.call->era == hit.watch->era) /* else another call's, whose return was not seen */
        take_call(ctx, &hit);
    bpf_map_delete_elem(&calls, &key);
    return 0;
}
