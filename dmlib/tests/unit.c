/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

static uint64_t line_up(uint64_t n) { return (n + 63) / 64 * 64; }

struct attune_header *make_memory(uint32_t slots, uint32_t rings, uint32_t records) {
    struct attune_header h = {
        .magic = ATTUNE_ABI_MAGIC,
        .version = ATTUNE_ABI_VERSION,
        .header_size = sizeof(h),
        .point_count = ATTUNE_POINT_COUNT,
        .slot_count = slots,
        .ring_count = rings,
        .ring_records = records,
        .epoch = 1,
    };
    h.control_offset = sizeof(h);
    h.mailbox_offset = h.control_offset + ATTUNE_POINT_COUNT * sizeof(struct attune_point_control);
    h.slot_offset =
        line_up(h.mailbox_offset + ATTUNE_MAILBOX_COUNT * sizeof(struct attune_command));
    h.ring_offset = line_up(h.slot_offset + (slots + 1) * sizeof(struct attune_slot));
    h.program_offset =
        line_up(h.ring_offset + (uint64_t)rings * records * sizeof(struct attune_record));
    h.program_count = 2;
    h.table_offset = h.program_offset + h.program_count * sizeof(struct attune_program_slot);
    h.table_count = 1;
    h.total_size = h.table_offset + h.table_count * sizeof(struct attune_table);
    struct attune_header *memory = aligned_alloc(64, line_up(h.total_size));
    memset(memory, 0, line_up(h.total_size));
    *memory = h;
    return memory;
}

struct dm_mapping use_memory(struct attune_header *memory) {
    struct dm_mapping mapping;
    EXPECT(dm_layout_check(memory, memory->total_size, &mapping));
    for (unsigned i = 0; i < ATTUNE_POINT_COUNT; i++)
        mapping.controls[i].max_value = UINT64_MAX;
    dm_live_publish(&mapping);
    return mapping;
}

void hit(unsigned point, uint64_t value, uint64_t extra) {
    const struct attune_point_control *control = dm_control(point);
    uint64_t asked = dm_asked(control);
    if (!dm_hot(point, control, asked, value, extra, NULL) &&
        !dm_warm(point, control, asked, value))
        dm_late(point, value, extra, 0);
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"layout", test_layout},     {"environment", test_environment},
        {"records", test_records},   {"aggregates", test_aggregates},
        {"threads", test_threads},   {"mailbox", test_mailbox},
        {"memory", test_memory},     {"stubs", test_stubs},
        {"programs", test_programs}, {"tables", test_tables},
        {"calls", test_calls},       {"hits", test_hits},
        {"claims", test_claims},
    };
    EXPECT(dm_live_wipe_in_children() && dm_live_prepare());
    dm_stub_prepare();
    dm_thread_prepare();
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        tests[i].run();
        printf("ok   %s\n", tests[i].name);
    }
    return 0;
}
