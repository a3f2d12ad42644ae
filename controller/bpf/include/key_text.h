/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Keys that are no numbers: strings, and stacks of calls. Such a key is found in its
 * table by a hash of 64 bits. What it stands for is kept once, beside the place that
 * the table gives it, for user space to read.
 */
#ifndef ATTUNE_KEY_TEXT_H
#define ATTUNE_KEY_TEXT_H

#include "capture.h"
#include "uprobe_maps.h"

/* Where a hit puts its key together. A probe may be preempted by another task's on
 * the same processor, so each has some. */
struct draft {
    u32 taken;
    u32 reserved;
    struct key_text text;
    u64 walk[6]; /* struct walk of unwind.h */
};

#define DRAFTS 128u
#define DRAFTS_OF_CPU 4u

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, DRAFTS);
    __type(key, u32);
    __type(value, struct draft);
} drafts SEC(".maps");

/* A draft that no other hit has; NULL: all that this processor may have are in use. */
INLINE struct draft *take_draft(void) {
    u32 first = bpf_get_smp_processor_id() * DRAFTS_OF_CPU;

    for (u32 i = 0; i < DRAFTS_OF_CPU; i++) {
        u32 number = (first + i) & (DRAFTS - 1);
        struct draft *draft = bpf_map_lookup_elem(&drafts, &number);

        if (draft && !__sync_val_compare_and_swap(&draft->taken, 0, 1))
            return draft;
    }
    return 0;
}

INLINE void leave_draft(struct draft *draft) { __sync_lock_test_and_set(&draft->taken, 0); }

/* Mixes as the finisher of MurmurHash3 does. Nobody is kept from making keys that
 * meet: they would be in their own process' table. */
INLINE u64 mix(u64 hash, u64 word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53ull;
    return hash ^ hash >> 33;
}

NOINLINE u64 hash_of(const struct key_text *text) {
    u64 hash;

    if (!text)
        return 0;
    hash = mix(text->length, text->cut);
    for (u32 i = 0; i < TEXT_WORDS && i * 8 < text->length; i++)
        hash = mix(hash, text->words[i]);
    return hash;
}

/* Copies a text to its place, unless another hit does or has done. */
NOINLINE int copy_text(struct key_text *to, const struct key_text *from) {
    if (!to || !from || __sync_val_compare_and_swap(&to->state, TEXT_FREE, TEXT_WRITING))
        return 0;
    for (u32 i = 0; i < TEXT_WORDS && i * 8 < from->length; i++)
        to->words[i] = from->words[i];
    to->length = from->length;
    to->cut = from->cut;
    __sync_val_compare_and_swap(&to->state, TEXT_WRITING, TEXT_READY);
    return 0;
}

INLINE void note_text(const struct attune_program *program, u32 place, struct draft *draft) {
    u32 number = program->table - 1;
    void *table = bpf_map_lookup_elem(&text_tables, &number);
    struct key_text *to = table ? bpf_map_lookup_elem(table, &place) : 0;

    if (to && to->state == TEXT_FREE)
        copy_text(to, &draft->text);
}

/* Whether a key is found by its text. */
INLINE bool is_text(const struct attune_capture *capture) {
    return attune_type_string(capture->type) || capture->source == ATTUNE_FROM_STACK;
}

/* Reads a string to where there is room for the longest one and two bytes more. Returns
 * its length, which may be beyond the limit: it was cut there; negative: it cannot be
 * read. */
INLINE s64 read_string(u8 *to, const struct attune_capture *capture, u64 value) {
    u64 limit = capture->limit, size;
    long got;

    if (capture->type == ATTUNE_TYPE_SIZED_STRING) {
        u64 length = value >> LENGTH_SHIFT;

        size = length > limit ? limit : length;
        TELL_VERIFIER(size);
        if (size > ATTUNE_STRING)
            return -1;
        value = value << (64 - LENGTH_SHIFT) >> (64 - LENGTH_SHIFT);
        return bpf_probe_read_user(to, size, (void *)value) ? -1 : (s64)length;
    }
    size = limit + 2; /* one byte more than the longest, and the zero: what fills it was cut */
    TELL_VERIFIER(size);
    if (size > ATTUNE_STRING + 2)
        return -1;
    got = bpf_probe_read_user_str(to, size, (void *)value);
    if (got > 0)
        got--; /* Linux 6.1 and 6.12 do not count the end of an empty string */
    return got;
}

/* Drafts a string; false if it cannot be read. */
NOINLINE int draft_string(struct draft *draft, const struct attune_capture *capture, u64 value) {
    s64 length;
    u64 end;

    if (!draft || !capture)
        return 0;
    length = read_string((u8 *)draft->text.words, capture, value);
    if (length < 0)
        return 0;
    end = length > capture->limit ? capture->limit : (u64)length;
    draft->text.length = end;
    draft->text.cut = length > capture->limit;
    TELL_VERIFIER(end);
    if (end <= ATTUNE_STRING)
        *(u64 *)((u8 *)draft->text.words + end) = 0;
    return 1;
}

#endif
