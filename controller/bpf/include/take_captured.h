/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The part of uprobes.bpf.c that is for points that capture. It uses that
 * file's maps.
 */
#ifndef ATTUNE_TAKE_CAPTURED_H
#define ATTUNE_TAKE_CAPTURED_H

#include "unwind.h"

INLINE u64 call_site(struct registers *ctx, struct hit *hit) {
    /* A return probe's program counter is where the call returns to. */
    if (hit->at_return || hit->plan->flags & PLAN_STATIC)
        return program_counter(ctx);
    return return_address(ctx);
}

/* The thread's id as its process sees it. */
INLINE u32 inner_thread(void) {
    struct task_struct *task = bpf_get_current_task_btf();
    u32 level = task->thread_pid->level;
    struct pid *pid;
    s32 number = 0;

    if (level) {
        pid = READ(task, thread_pid);
        bpf_probe_read_kernel(&number, sizeof(number), (struct upid *)pid->numbers + level);
    } else {
        number = task->pid;
    }
    TELL_VERIFIER(number); /* the compiler would load it from either at one place */
    return number;
}

/* Notes all that captures may ask for and that only the context can give. */
INLINE void note_origin(struct registers *ctx, struct hit *hit, struct origin *from) {
    save_registers(ctx, from->registers);
    from->returned = return_value(ctx);
    from->thread = inner_thread();
    from->cpu = bpf_get_smp_processor_id();
    if (hit->watch->flags & WATCH_CALL_SITE)
        from->call_site = call_site(ctx, hit);
    if (!hit->call)
        return;
    for (u32 i = 0; i < PARAMETERS; i++)
        from->registers[i] = hit->call->parameters[i];
}

/* A record as memory, of which each has so much. */
struct record_bytes {
    u8 bytes[RING_RECORD_MAX];
};

/* Reads a string into a record, as read_string does. A function of its own: Linux 6.1 loses
 * sight of the bound else. */
NOINLINE s64 string_into(struct record_bytes *record, u64 to, const struct attune_capture *capture,
                         u64 value) {
    TELL_VERIFIER(to);
    if (!record || !capture || to > ALL_STRINGS)
        return -1;
    return read_string(record->bytes + sizeof(struct captured_record) + to, capture, value);
}

/* Reads a string to its place; false if it cannot be read. at moves on. */
INLINE bool take_string(struct captured_record *record, u32 *at,
                        const struct attune_capture *capture, u64 *value) {
    s64 length = string_into((struct record_bytes *)record, *at, capture, *value);
    u32 limit = capture->limit;

    if (length < 0)
        return false;
    *value = length > limit ? limit | ATTUNE_STRING_CUT : length;
    *at += ((length > limit ? limit : length) + 7) & ~7u;
    return true;
}

INLINE void deliver_captured(struct hit *hit, const struct attune_program *program,
                             struct taken *taken) {
    u32 length = hit->watch->reserve & ~7u, at = 0, kinds = taken->kinds;
    struct captured_record *record;

    if (length < sizeof(*record) || length > RING_RECORD_MAX)
        return;
    record = (struct captured_record *)reserve(hit, length);
    if (!record)
        return;
    for (u32 i = 0; i < ATTUNE_CAPTURES && i < program->captures; i++) {
        u64 value = taken->value[i];

        if (kind_of(kinds, i) == ATTUNE_KIND_STRING &&
            !take_string(record, &at, &program->capture[i], &value)) {
            value = 0;
            kinds = (kinds & ~(15u << (4 * i))) | ATTUNE_KIND_UNREADABLE << (4 * i);
        }
        record->value[i] = value;
    }
    record->captures = program->captures;
    record->kinds = kinds;
    ring_commit(&record->record.word, RING_WORD(length, hit->process));
}

INLINE struct attune_aggregate *place_at(void *table, u32 number) {
    return bpf_map_lookup_elem(table, &number);
}

/* The number of a key's place in its table; -1: there is no room for it. A function
 * of its own to the verifier. */
NOINLINE int place_of(struct watch *watch, const struct attune_program *program, u64 key) {
    u32 number;
    void *table;

    if (!watch || !program)
        return -1;
    number = program->table - 1;
    table = bpf_map_lookup_elem(&key_tables, &number);
    if (!table)
        return -1;
    return attune_find_place(table, program->places - 1, key, &watch->keys, program->max_keys,
                             place_at);
}

INLINE struct attune_aggregate *of_key(struct watch *watch, const struct attune_program *program,
                                       u64 key) {
    int place = place_of(watch, program, key);
    u32 number = program->table - 1;
    void *table = bpf_map_lookup_elem(&key_tables, &number);

    return table && place >= 0 ? place_at(table, place) : 0;
}

/* attune_add() as a function of its own to the verifier. */
NOINLINE int add(struct attune_aggregate *to, u64 value, u32 is_signed, u32 now) {
    if (to)
        attune_add(to, value, is_signed, now);
    return 0;
}

/* Sums up a hit: with a key in the key's aggregate, if it has one. Returns whether that
 * remains to be done: the key is a text, or a stack (add_by_text). */
INLINE bool sum_up(struct hit *hit, const struct attune_program *program, struct taken *taken) {
    u32 value = (program->value - 1) & (ATTUNE_CAPTURES - 1);
    u32 key = (program->key - 1) & (ATTUNE_CAPTURES - 1);
    struct attune_aggregate *sums = 0;

    if ((program->value && !is_readable(taken, value)) ||
        (program->key && !is_readable(taken, key))) {
        __sync_fetch_and_add(&hit->watch->unreadable, 1);
        return false;
    }
    if (program->value) {
        u32 type = program->capture[value].type;

        hit->own = summand(type, taken->value[value]);
        hit->is_signed = attune_summand_signed(type);
    }
    if (program->key) {
        hit->value = taken->value[key];
        if (is_text(&program->capture[key]))
            return true;
        sums = of_key(hit->watch, program, hit->value);
    }
    if (!sums)
        sums = &hit->watch->sums;
    add(sums, hit->own, hit->is_signed, interval);
    return false;
}

/* Whether a hit becomes a record, of which only those count for which all conditions hold. */
INLINE bool delivers(struct hit *hit) {
    return watch_delivers(hit->watch, watch_count(hit->watch));
}

/* Takes a hit of a point that captures, and returns whether add_by_text is to be called. A
 * function of its own, so that others do not pay for its registers. Nothing is read of a hit
 * that is none of one in some, where no condition has to be known for that. */
static NOINLINE int take_captured(struct registers *ctx, struct hit *hit) {
    u32 number = hit->watch->program - 1;
    const struct attune_program *program = bpf_map_lookup_elem(&programs, &number);
    struct origin from = {};
    struct taken taken = {};
    u32 value;
    bool events;

    if (!program)
        return 0;
    events = hit->watch->flags & WATCH_EVENT;
    if (events && !program->predicates && !delivers(hit))
        return 0;
    note_origin(ctx, hit, &from);
    for (u32 i = 0; i < ATTUNE_CAPTURES && i < program->captures; i++) {
        take_one(&from, hit->plan, program, &taken, i);
        if (program->capture[i].type == ATTUNE_TYPE_SIZED_STRING && is_readable(&taken, i))
            take_length(&from, hit->plan, program, &taken, i);
    }
    if (!all_hold(program, &taken))
        return 0;
    if (!events)
        return sum_up(hit, program, &taken);
    if (program->predicates && !delivers(hit))
        return 0;
    value = (program->value - 1) & (ATTUNE_CAPTURES - 1);
    if (program->value)
        hit->value = taken.value[value];
    deliver_captured(hit, program, &taken);
    return 0;
}

/* Drafts the key of a hit; false if it cannot be read. */
INLINE bool draft_key(struct registers *ctx, struct hit *hit, struct draft *draft,
                      const struct attune_program *program) {
    u32 key = (program->key - 1) & (ATTUNE_CAPTURES - 1);
    struct walk *walk = (struct walk *)draft->walk;

    if (program->capture[key].source != ATTUNE_FROM_STACK)
        return draft_string(draft, &program->capture[key], hit->value);
    walk->pc = walk->look = program_counter(ctx);
    walk->stack = register_value(ctx, STACK_POINTER);
    walk->base = register_value(ctx, BASE_POINTER);
    /* At an entry, and at a return instruction, the stack is as a call leaves it. */
    return draft_stack(draft, walk, program->table - 1,
                       !hit->at_return && !(hit->plan->flags & PLAN_STATIC));
}

/* The aggregate of a key that is no number; the watch's own if there is no room for it,
 * NULL if the key cannot be read. */
INLINE struct attune_aggregate *of_text(struct registers *ctx, struct hit *hit,
                                        const struct attune_program *program) {
    struct draft *draft = take_draft();
    struct attune_aggregate *sums = &hit->watch->sums;
    u32 number = program->table - 1;
    void *table = bpf_map_lookup_elem(&key_tables, &number);
    int place;

    if (!draft || !table)
        return sums;
    if (!draft_key(ctx, hit, draft, program)) {
        leave_draft(draft);
        return 0;
    }
    place = place_of(hit->watch, program, hash_of(&draft->text));
    if (place >= 0) {
        note_text(program, place, draft);
        sums = place_at(table, place);
    }
    leave_draft(draft);
    return sums;
}

/* Adds a hit to the aggregate of its key, which is a text or a stack. Not called by
 * take_captured: all frames together have 512 bytes. */
static NOINLINE int add_by_text(struct registers *ctx, struct hit *hit) {
    u32 number = hit->watch->program - 1;
    const struct attune_program *program = bpf_map_lookup_elem(&programs, &number);
    struct attune_aggregate *sums;

    if (!program)
        return 0;
    sums = of_text(ctx, hit, program);
    if (sums)
        add(sums, hit->own, hit->is_signed, interval);
    else
        __sync_fetch_and_add(&hit->watch->unreadable, 1);
    return 0;
}

#endif
