/* SPDX-License-Identifier: Apache-2.0 */
/* dm_layout_check, which reads the header of a memory file that anyone who may
 * speak to the gate can have made. The input is the header from its sizes on: what
 * must be equal to a constant is put in, for it would only stop the fuzzer. */
#include <string.h>

#include "dmlib.h"
#include "fuzz.h"

/* Nothing larger can be mapped. */
#define SIZE_LIMIT (1ull << 46)

unsigned long fuzz_accepted;

struct extent {
    const char *at;
    uint64_t size;
};

static void require_inside(const struct extent *part, const struct dm_mapping *m) {
    const char *base = (const char *)m->header;
    EXPECT(part->at >= base + sizeof(*m->header));
    EXPECT((uint64_t)(part->at - base) <= m->size);
    EXPECT(part->size <= m->size - (uint64_t)(part->at - base));
    EXPECT((uint64_t)(part->at - base) % ATTUNE_CACHE_LINE == 0);
}

/* All parts lie inside, and none on another. */
static void check_mapping(const struct dm_mapping *m) {
    const struct extent parts[] = {
        {(const char *)m->controls, ATTUNE_POINT_COUNT * sizeof(*m->controls)},
        {(const char *)m->mailbox, ATTUNE_MAILBOX_COUNT * sizeof(*m->mailbox)},
        {(const char *)m->slots, (m->slot_count + 1ull) * sizeof(*m->slots)},
        {(const char *)m->rings, (uint64_t)m->ring_count * m->ring_records * sizeof(*m->rings)},
        {(const char *)m->programs, m->program_count * sizeof(*m->programs)},
        {(const char *)m->tables, m->table_count * sizeof(*m->tables)},
    };
    enum { PARTS = sizeof(parts) / sizeof(parts[0]) };
    for (int i = 0; i < PARTS; i++) {
        if (parts[i].size == 0)
            continue;
        require_inside(&parts[i], m);
        for (int j = 0; j < i; j++)
            EXPECT(parts[j].size == 0 || parts[i].at >= parts[j].at + parts[j].size ||
                   parts[j].at >= parts[i].at + parts[i].size);
    }
    EXPECT(m->ring_records > 0 && (m->ring_records & (m->ring_records - 1)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct attune_header header = {0};
    struct dm_mapping mapping;
    size_t first = offsetof(struct attune_header, total_size), room = sizeof(header) - first;
    memcpy((char *)&header + first, data, size < room ? size : room);
    header.magic = ATTUNE_ABI_MAGIC;
    header.version = ATTUNE_ABI_VERSION;
    header.header_size = sizeof(header);
    header.point_count = ATTUNE_POINT_COUNT;
    header.total_size %= SIZE_LIMIT;
    /* Only the header is there: the check must not touch the rest. */
    if (dm_layout_check(&header, header.total_size, &mapping)) {
        check_mapping(&mapping);
        fuzz_accepted++;
    }
    return 0;
}
