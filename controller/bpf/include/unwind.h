/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Walks the stack of a hit's thread. Programs of distributions keep no frame pointers,
 * so it goes by their call frame information, which user space gives as tables: for a
 * range of instructions, where the frame lies and where the caller's base pointer is.
 * Code without such a table (made at run time, Go's) is believed to keep frame pointers.
 */
#ifndef ATTUNE_UNWIND_H
#define ATTUNE_UNWIND_H

#include "key_text.h"

/* Most objects of a process, and most rows of one: powers of two. */
#define UNWIND_OBJECTS 8192u
#define UNWIND_ROWS (1u << 22)

/* Where a walk is. It lies in a map, whose words the verifier takes for unknown: it
 * would follow each way of a search otherwise. */
struct walk {
    u64 pc, stack, base;
    u64 look; /* the address whose row holds: within the call, of a caller */
    u32 object;
    u32 row;
};

/* Whether an object begins at or before the address. A function of its own: in a loop
 * with these branches Linux 6.1 sees one that it does not follow. */
static NOINLINE u32 begins_before(struct walk *walk, void *table, u32 number) {
    struct unwind_object *object = bpf_map_lookup_elem(table, &number);

    return walk && object && object->start && object->start <= walk->look;
}

/* The object that holds the address; 0: none. */
NOINLINE u32 find_object(struct walk *walk, u32 tables) {
    void *table = bpf_map_lookup_elem(&object_tables, &tables);

    if (!table || !walk)
        return 0;
    walk->object = 0;
    for (u32 bit = UNWIND_OBJECTS / 2; bit; bit >>= 1)
        walk->object += begins_before(walk, table, walk->object + bit) * bit;
    return walk->object;
}

/* The number of the row + 1 that holds the address; 0: none. */
NOINLINE u32 find_row(struct walk *walk, u32 number, u32 rows, u64 pc) {
    void *table = bpf_map_lookup_elem(&row_tables, &number);

    if (!table || !walk)
        return 0;
    walk->row = 0;
    for (u32 bit = UNWIND_ROWS / 2; bit; bit >>= 1) {
        u32 at = walk->row + bit, index = at - 1;
        struct unwind_row *row;

        if (at > rows)
            continue;
        row = bpf_map_lookup_elem(table, &index);
        if (row && row->pc <= pc)
            walk->row = at;
    }
    return walk->row;
}

/* The row that holds where the walk is, as 64 bits; 0: none. */
NOINLINE u64 row_of(struct walk *walk, u32 tables) {
    u32 number, index;
    struct unwind_object *object;
    void *table;
    u64 *row;

    if (!walk)
        return 0;
    number = find_object(walk, tables);
    table = bpf_map_lookup_elem(&object_tables, &tables);
    object = table ? bpf_map_lookup_elem(table, &number) : 0;
    if (!object || walk->look >= object->end || !object->table)
        return 0;
    number = object->table - 1;
    index = find_row(walk, number, object->rows, walk->look - object->base);
    table = bpf_map_lookup_elem(&row_tables, &number);
    if (!index-- || !table)
        return 0;
    row = bpf_map_lookup_elem(table, &index);
    return row ? *row : 0;
}

/* Goes on to what lies at the end of a frame. */
INLINE bool leave_frame(struct walk *walk, u64 frame, u64 saved) {
    u64 address, base = walk->base;

    if (frame <= walk->stack || !read_number(8, frame - 8, &address) || !address)
        return false;
    if (saved && !read_number(8, frame - 8 * saved, &base))
        return false;
    walk->pc = address;
    walk->look = address - 1;
    walk->stack = frame;
    walk->base = base;
    return true;
}

/* Goes on to the caller; 0: there is none, or it cannot be found. */
NOINLINE int to_caller(struct walk *walk, u32 tables) {
    u64 word, frame;

    if (!walk)
        return 0;
    word = row_of(walk, tables);
    frame = (word >> 32 & 0xffff) * 8;
    switch (word >> 48 & 0xff) {
    case ROW_STACK:
        return leave_frame(walk, walk->stack + frame, word >> 56);
    case ROW_BASE:
        return leave_frame(walk, walk->base + frame, word >> 56);
    case ROW_LINKAGE:
        return leave_frame(walk, walk->stack + 8 + ((walk->pc & 15) >= 11) * 8, 0);
    case ROW_NONE:
        return leave_frame(walk, walk->base + 16, 2);
    }
    return 0;
}

/* Drafts the stack: the address where it is, and those that its calls return to. */
NOINLINE int draft_stack(struct draft *draft, struct walk *walk, u32 tables, u32 called) {
    u32 frames = 0;

    if (!draft || !walk)
        return 0;
    draft->text.cut = 0;
    for (u32 i = 0; i < TEXT_WORDS; i++) {
        draft->text.words[i] = walk->pc;
        frames = i + 1;
        if (i == 0 && called ? !leave_frame(walk, walk->stack + 8, 0) : !to_caller(walk, tables))
            break;
        draft->text.cut = i + 1 == TEXT_WORDS;
    }
    draft->text.length = 8 * frames;
    return 1;
}

#endif
