/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregates by key, in tables that all threads share without a lock. */
#include "record.h"

DM_INLINE struct attune_aggregate *place_at(void *table, uint32_t number) {
    return &((struct attune_table *)table)->place[number];
}

void dm_table_add(const struct attune_program *program, uint64_t key, uint64_t value,
                  bool is_signed) {
    uint32_t number = program->table - 1; /* 0: beyond every count */
    uint32_t mask = (program->places - 1) & (ATTUNE_PLACES - 1);
    if (number >= dm_live.mapping.table_count) {
        dm_lose_no_slot(); /* unmapped (hooks_lockall.c) */
        return;
    }
    struct attune_table *table = &dm_parent.tables[number];
    int32_t place = attune_find_place(table, mask, key, &table->keys, program->max_keys, place_at);
    attune_add(place < 0 ? &table->rest : &table->place[place], value, is_signed, dm_interval());
}
