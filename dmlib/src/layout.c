/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the memory file, and proof that the compiler lays it out as the
 * ABI says. */
#include "dmlib.h"

_Static_assert(sizeof(struct attune_point_control) == 32, "point control");
_Static_assert(sizeof(struct attune_aggregate) == 320, "aggregate");
_Static_assert(sizeof(struct attune_open_call) == 64, "open call");
_Static_assert(sizeof(struct attune_slot) ==
                   192 + 320 * ATTUNE_POINT_COUNT + 64 * ATTUNE_OPEN_CALLS,
               "slot");
_Static_assert(offsetof(struct attune_slot, head) == 64, "producer line");
_Static_assert(offsetof(struct attune_slot, tail) == 128, "consumer line");
_Static_assert(sizeof(struct attune_record) == 32, "record");
_Static_assert(sizeof(struct attune_command) == 128, "command");
_Static_assert(sizeof(struct attune_header) == 256, "header");
_Static_assert(offsetof(struct attune_header, pid) == 128, "application's line");
_Static_assert(offsetof(struct attune_header, lost_no_slot) == 192, "counters' line");
_Static_assert(sizeof(struct attune_program) == 512, "program");
_Static_assert(sizeof(struct attune_program_slot) == 576, "program slot");
_Static_assert(sizeof(struct attune_continuation) == sizeof(struct attune_record), "continuation");
_Static_assert(offsetof(struct attune_continuation, flags) == offsetof(struct attune_record, flags),
               "continuation");
_Static_assert(ATTUNE_CONTINUATIONS_MAX < 256, "fits into a record's flags");
_Static_assert(offsetof(struct attune_aggregate, histogram) == 64, "counts in one line");
_Static_assert(sizeof(struct attune_table) % ATTUNE_CACHE_LINE == 0, "table");
_Static_assert(DM_STUB_COUNT == ATTUNE_STUB_COUNT, "stubs");

#define MAX_RING_RECORDS (1u << 24)

struct part {
    uint64_t offset;
    uint64_t count;
    uint64_t size; /* of one */
};

static bool inside(const struct part *part, uint64_t total) {
    uint64_t bytes, end;
    if (part->count == 0 && part->offset == 0)
        return true; /* there is none */
    if (part->offset % ATTUNE_CACHE_LINE != 0 || part->offset < sizeof(struct attune_header))
        return false;
    if (__builtin_mul_overflow(part->count, part->size, &bytes) ||
        __builtin_add_overflow(part->offset, bytes, &end))
        return false;
    return end <= total;
}

static bool disjoint(const struct part *a, const struct part *b) {
    return a->offset + a->count * a->size <= b->offset ||
           b->offset + b->count * b->size <= a->offset;
}

static bool parts_fit(const struct part *parts, size_t count, uint64_t total) {
    for (size_t i = 0; i < count; i++) {
        if (!inside(&parts[i], total))
            return false;
        for (size_t j = 0; j < i; j++)
            if (!disjoint(&parts[i], &parts[j]))
                return false;
    }
    return true;
}

bool dm_layout_check(void *memory, uint64_t size, struct dm_mapping *mapping) {
    if (size < sizeof(struct attune_header))
        return false;
    /* A copy, so that nothing changes between the check and the use. */
    struct attune_header header;
    __builtin_memcpy(&header, memory, sizeof(header));

    if (header.magic != ATTUNE_ABI_MAGIC || header.version != ATTUNE_ABI_VERSION ||
        header.header_size != sizeof(header) || header.total_size != size ||
        header.point_count != ATTUNE_POINT_COUNT)
        return false;
    uint32_t records = header.ring_records;
    if (records == 0 || (records & (records - 1)) != 0 || records > MAX_RING_RECORDS)
        return false;

    const struct part parts[] = {
        {header.control_offset, ATTUNE_POINT_COUNT, sizeof(struct attune_point_control)},
        {header.mailbox_offset, ATTUNE_MAILBOX_COUNT, sizeof(struct attune_command)},
        {header.slot_offset, header.slot_count + 1ull, sizeof(struct attune_slot)},
        {header.ring_offset, header.ring_count, records * sizeof(struct attune_record)},
        {header.program_offset, header.program_count, sizeof(struct attune_program_slot)},
        {header.table_offset, header.table_count, sizeof(struct attune_table)},
    };
    if (!parts_fit(parts, sizeof(parts) / sizeof(parts[0]), size))
        return false;

    char *base = memory;
    *mapping = (struct dm_mapping){
        .header = memory,
        .controls = (void *)(base + header.control_offset),
        .mailbox = (void *)(base + header.mailbox_offset),
        .slots = (void *)(base + header.slot_offset),
        .rings = (void *)(base + header.ring_offset),
        .programs = (void *)(base + header.program_offset),
        .tables = (void *)(base + header.table_offset),
        .size = size,
        .slot_count = header.slot_count,
        .slot_limit = header.slot_count,
        .ring_count = header.ring_count,
        .ring_records = records,
        .program_count = header.program_count,
        .table_count = header.table_count,
    };
    return true;
}

#define SHARE 16
/* What systems let everybody lock: with more, a program may lock all of its memory. */
#define USUALLY_LOCKABLE (8ull << 20)

bool dm_layout_leaves_room(uint64_t size, uint64_t addresses, uint64_t lockable) {
    return size <= addresses / SHARE && (lockable <= USUALLY_LOCKABLE || size <= lockable / SHARE);
}
