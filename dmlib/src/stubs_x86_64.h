/* SPDX-License-Identifier: Apache-2.0 */
/* What stubs_x86_64.S knows of structures and constants. */
#ifndef DM_STUBS_X86_64_H
#define DM_STUBS_X86_64_H

#define STUB_COUNT 192
#define HOOK_COUNT 64
#define NUMBER_BEHIND 26 /* the return address of an island */

#define CONTROL_SIZE 32
#define CONTROL_SHIFT 5
#define CONTROL_MIN 8
#define CONTROL_MAX 16
#define CONTROL_PARAMETER 24
#define CONTROL_AGGREGATE 1
#define CONTROL_EVENT 2

#define LIVE_GENERATION 8
#define HEADER_EPOCH 72

#define THREAD_GENERATION 0
#define THREAD_NEXT 8
#define THREAD_LIMIT 16
#define THREAD_SLOT 24
#define THREAD_BUSY -2

#define SLOT_HEAD 64
#define RECORD_SIZE 32
#define RECORD_POINT 8
#define RECORD_VALUE 16
#define RECORD_EXTRA 24

/* Of the first stub's aggregate in a slot. */
#define SUMS_SIZE 320
#define SUMS (192 + HOOK_COUNT * SUMS_SIZE)
#define SUMS_COUNT SUMS
#define SUMS_SUM (SUMS + 8)
#define SUMS_LEAST (SUMS + 16)
#define SUMS_GREATEST (SUMS + 32)
#define SUMS_HISTOGRAM (SUMS + 64)

#ifndef __ASSEMBLER__
#include "dmlib.h"

#define DM_SAME(a, b) _Static_assert((uint64_t)(a) == (uint64_t)(b), "stubs_x86_64.S")
#define DM_LIES(at, type, field) DM_SAME(at, offsetof(type, field))

DM_SAME(STUB_COUNT, ATTUNE_STUB_COUNT);
DM_SAME(HOOK_COUNT, ATTUNE_HOOK_COUNT);
DM_SAME(NUMBER_BEHIND, ATTUNE_ISLAND_NUMBER - ATTUNE_ISLAND_CALL);
DM_SAME(CONTROL_SIZE, sizeof(struct attune_point_control));
DM_SAME(CONTROL_SIZE, 1 << CONTROL_SHIFT);
DM_LIES(CONTROL_MIN, struct attune_point_control, min_value);
DM_LIES(CONTROL_MAX, struct attune_point_control, max_value);
DM_LIES(CONTROL_PARAMETER, struct attune_point_control, parameter);
DM_SAME(CONTROL_AGGREGATE, ATTUNE_CTL_AGGREGATE);
DM_SAME(CONTROL_EVENT, ATTUNE_CTL_EVENT);
DM_LIES(LIVE_GENERATION, union dm_live_page, live.generation);
DM_LIES(0, struct dm_mapping, header);
DM_LIES(HEADER_EPOCH, struct attune_header, epoch);
DM_LIES(THREAD_GENERATION, struct dm_thread, generation);
DM_LIES(THREAD_NEXT, struct dm_thread, next);
DM_LIES(THREAD_LIMIT, struct dm_thread, limit);
DM_LIES(THREAD_SLOT, struct dm_thread, slot);
DM_SAME(THREAD_BUSY, DM_BUSY);
DM_LIES(SLOT_HEAD, struct attune_slot, head);
DM_SAME(RECORD_SIZE, sizeof(struct attune_record));
DM_LIES(0, struct attune_record, time);
DM_LIES(RECORD_POINT, struct attune_record, point);
DM_LIES(RECORD_VALUE, struct attune_record, value);
DM_LIES(RECORD_EXTRA, struct attune_record, extra);
DM_SAME(SUMS_SIZE, sizeof(struct attune_aggregate));
DM_LIES(SUMS_COUNT, struct attune_slot, aggregates[HOOK_COUNT].count);
DM_LIES(SUMS_SUM, struct attune_slot, aggregates[HOOK_COUNT].sum);
DM_LIES(SUMS_LEAST, struct attune_slot, aggregates[HOOK_COUNT].least);
DM_LIES(SUMS_GREATEST, struct attune_slot, aggregates[HOOK_COUNT].greatest);
DM_LIES(SUMS_HISTOGRAM, struct attune_slot, aggregates[HOOK_COUNT].histogram);
DM_SAME(63, ATTUNE_HIST_BUCKETS - 1);

#undef DM_LIES
#undef DM_SAME
#endif

#endif
