/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a point captures at a hit. A program lies in memory that the controller
 * writes: it is interpreted within bounds of our own, whatever it says. Memory
 * of the application is read through the kernel, which answers where a plain
 * access would kill the program; see docs/design.
 */
#include "record.h"

/* Captured values of one hit. A capture is evaluated when somebody first asks:
 * a hit that a predicate drops reads no strings. */
struct taken {
    const struct attune_program *program;
    const struct dm_call *call;
    unsigned captures;
    uint32_t evaluated;  /* bit c: value[c] is valid, or unreadable */
    uint32_t unreadable; /* bit c: there is none */
    uint64_t value[ATTUNE_CAPTURES];
};

static unsigned bounded(unsigned n, unsigned most) { return n < most ? n : most; }

/* The value where the steps begin; false if it cannot be had here. */
static bool source(const struct attune_capture *capture, const struct dm_call *call,
                   uint64_t *value) {
    switch (capture->source) {
    case ATTUNE_FROM_PARAMETER:
        *value = call->integers[bounded(capture->index, 5)];
        return call->has_integers;
    case ATTUNE_FROM_FLOAT_PARAMETER:
        if (call->reals != NULL)
            __builtin_memcpy(value, &call->reals[capture->index & 7], sizeof(*value));
        return call->reals != NULL;
    case ATTUNE_FROM_RETURNED:
        *value = call->returned;
        return call->has_returned;
    case ATTUNE_FROM_FLOAT_RETURNED:
        *value = call->real_returned;
        return call->has_real;
    case ATTUNE_FROM_CONSTANT:
        *value = capture->value;
        return true;
    case ATTUNE_FROM_THREAD:
        *value = (uint32_t)dm_thread.slot->tid;
        return true;
    case ATTUNE_FROM_CPU:
        return dm_cpu(value);
    case ATTUNE_FROM_CALL_SITE:
        *value = call->call_site;
        return true;
    }
    return false;
}

/* Reads size bytes at the address; the first step of some captures is at a
 * place that stays mapped. */
static bool fetch(const struct attune_capture *capture, unsigned step, uint64_t address,
                  uint32_t size, uint64_t *value) {
    *value = 0;
    if (step != 0 || (capture->index & ATTUNE_STAYS_MAPPED) == 0 ||
        capture->source != ATTUNE_FROM_CONSTANT)
        return dm_memory_copy(value, address, size) == size;
    const void *place = (const void *)(uintptr_t)address;
    switch (size) {
    case 1:
        __builtin_memcpy(value, place, 1);
        break;
    case 2:
        __builtin_memcpy(value, place, 2);
        break;
    case 4:
        __builtin_memcpy(value, place, 4);
        break;
    default:
        __builtin_memcpy(value, place, 8);
    }
    return true;
}

/* The value of a number; of a string, its address. */
static bool evaluate(const struct attune_capture *capture, const struct dm_call *call,
                     uint64_t *value) {
    unsigned steps = bounded(capture->steps, ATTUNE_STEPS);
    if (!source(capture, call, value))
        return false;
    if (steps == 0 && capture->source != ATTUNE_FROM_CONSTANT)
        *value = attune_widen(capture->type, *value);
    for (unsigned i = 0; i < steps; i++) {
        bool last = i + 1 == steps;
        uint64_t address = *value + (uint64_t)(int64_t)capture->offset[i];
        *value = address;
        if (last && capture->type == ATTUNE_TYPE_STRING)
            return true;
        if (!fetch(capture, i, address, last ? attune_type_size(capture->type) : 8, value))
            return false;
        if (last)
            *value = attune_widen(capture->type, *value);
    }
    return true;
}

/* True: taken->value[number] is valid. */
static bool has(struct taken *taken, unsigned number) {
    uint32_t bit = 1u << number;
    if (number >= taken->captures)
        return false;
    if ((taken->evaluated & bit) == 0) {
        taken->evaluated |= bit;
        if (!evaluate(&taken->program->capture[number], taken->call, &taken->value[number])) {
            taken->value[number] = 0;
            taken->unreadable |= bit;
        }
    }
    return (taken->unreadable & bit) == 0;
}

static bool all_hold(struct taken *taken) {
    const struct attune_program *program = taken->program;
    unsigned count = bounded(program->predicates, ATTUNE_PREDICATES);
    for (unsigned i = 0; i < count; i++) {
        unsigned number = program->predicate[i].capture;
        if (!has(taken, number) ||
            !attune_holds(&program->predicate[i], program->capture[number].type,
                          taken->value[number]))
            return false;
    }
    return true;
}

/* ---- aggregates ---------------------------------------------------------- */

static void count_unreadable(const struct attune_program *program) {
    struct attune_program_slot *slot = (struct attune_program_slot *)(uintptr_t)program;
    __atomic_add_fetch(&slot->unreadable, 1, __ATOMIC_RELAXED);
}

static void sum_up(struct taken *taken, struct attune_aggregate *own, uint64_t value) {
    const struct attune_program *program = taken->program;
    unsigned of = program->value, key = program->key;
    if ((of != 0 && !has(taken, of - 1u)) || (key != 0 && !has(taken, key - 1u)))
        return count_unreadable(program);
    bool is_signed = false;
    if (of != 0) {
        uint32_t type = program->capture[of - 1].type;
        value = attune_summand(type, taken->value[of - 1]);
        is_signed = attune_summand_signed(type);
    }
    if (key == 0)
        dm_aggregate(own, value, is_signed);
    else
        dm_table_add(program, taken->value[key - 1], value, is_signed);
}

/* ---- records --------------------------------------------------------------- */

/* The words that follow a record. */
struct words {
    unsigned count;
    uint32_t kinds;
    uint64_t word[ATTUNE_WORDS_MAX];
};

/* Appends a string: its length, and its bytes up to the limit. False if memory
 * ends before the string does. As the kernel's bpf_probe_read_user_str, it looks
 * two bytes beyond the limit: at what would be cut, and at what ends that. */
static bool append_string(struct words *words, uint64_t address, unsigned limit) {
    unsigned room = ATTUNE_WORDS_MAX - ATTUNE_CAPTURES;
    room = words->count < room ? (room - words->count) * 8 : 0;
    uint64_t *length = &words->word[words->count];
    char *bytes = (char *)(length + 1); /* behind the room there is some for every capture */
    limit = bounded(bounded(limit, ATTUNE_STRING), room);
    unsigned wanted = limit + 2, copied = dm_memory_copy(bytes, address, wanted), end = 0;
    while (end < copied && bytes[end] != 0)
        end++;
    if (end == copied && copied < wanted)
        return false;
    *length = end > limit ? limit | ATTUNE_STRING_CUT : end;
    end = bounded(end, limit);
    unsigned filled = (end + 7) / 8;
    if (end % 8 != 0)
        length[filled] &= (1ull << end % 8 * 8) - 1;
    words->count += 1 + filled;
    return true;
}

static void append(struct words *words, struct taken *taken, unsigned number) {
    const struct attune_capture *capture = &taken->program->capture[number];
    uint32_t kind = attune_type_kind(capture->type);
    bool readable = has(taken, number);
    if (readable && kind == ATTUNE_KIND_STRING)
        readable = append_string(words, taken->value[number], capture->limit);
    else if (readable)
        words->word[words->count++] = taken->value[number];
    if (!readable) {
        kind = ATTUNE_KIND_UNREADABLE;
        words->word[words->count++] = 0;
    }
    words->kinds |= kind << number * 4;
}

static DM_NOINLINE void publish(struct taken *taken, struct dm_thread *thread,
                                const struct dm_hit *hit, unsigned flags) {
    const struct attune_program *program = taken->program;
    struct words words;
    words.count = words.kinds = 0;
    for (unsigned i = 0; i < taken->captures; i++)
        append(&words, taken, i);
    struct attune_record record = {
        .time = hit->word & ATTUNE_CTL_DURATION ? hit->time : dm_ticks(),
        .point = (uint16_t)hit->point,
        .flags = (uint16_t)flags,
        .value = hit->value,
        .extra = hit->extra,
    };
    if (hit->word & ATTUNE_CTL_DURATION) {
        record.flags |= ATTUNE_RECORD_DURATION;
        record.extra = hit->duration;
    }
    if (program->value != 0) /* 0 if it could not be read */
        record.value = has(taken, program->value - 1u) ? taken->value[program->value - 1u] : 0;
    dm_write_followed(thread, &record, words.kinds, words.word, words.count);
}

void dm_program_take(struct dm_thread *thread, const struct dm_hit *hit,
                     const struct attune_point_control *control) {
    struct attune_aggregate *own = &thread->slot->aggregates[hit->point];
    if (control->program >= dm_live.mapping.program_count || hit->call == NULL)
        return;
    struct taken taken;
    taken.program = &dm_parent.programs[control->program].program;
    taken.call = hit->call;
    taken.captures = bounded(taken.program->captures, ATTUNE_CAPTURES);
    taken.evaluated = taken.unreadable = 0;
    if (!all_hold(&taken))
        return;
    if (hit->word & ATTUNE_CTL_AGGREGATE)
        sum_up(&taken, own, dm_measured(hit));
    if (!dm_delivers(hit, own, control->sample_mask))
        return;
    publish(&taken, thread, hit, control->sample_mask != 0 ? ATTUNE_RECORD_SAMPLED : 0);
}
