/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregates by key, in tables that all threads share. No lock: a bucket gets
 * its key by one compare-and-swap and keeps it, everything else is added
 * atomically. A thread that ends or is killed in the middle leaves a hit that is
 * counted in part, and nothing that another one waits for.
 */
#include "record.h"

/* Buckets in use: a power of two, at least half of them always empty. */
static uint32_t buckets(uint32_t max_keys) {
    uint32_t n = 2;
    while (n < 2 * max_keys && n < ATTUNE_TABLE_BUCKETS)
        n *= 2;
    return n;
}

/* Fibonacci hashing: addresses differ in their middle bits. */
static uint32_t first_bucket(uint64_t key, uint32_t count) {
    return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (count - 1);
}

/* Takes a place for one more key, if there is one. */
static bool take_place(struct attune_table *table, uint32_t max_keys) {
    uint32_t keys = __atomic_load_n(&table->keys, __ATOMIC_RELAXED);
    while (keys < max_keys)
        if (__atomic_compare_exchange_n(&table->keys, &keys, keys + 1, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return true;
    return false;
}

static void give_place_back(struct attune_table *table) {
    __atomic_sub_fetch(&table->keys, 1, __ATOMIC_RELAXED);
}

static struct attune_keyed *of_zero(struct attune_table *table, uint32_t max_keys) {
    uint32_t none = 0;
    if (__atomic_load_n(&table->zero, __ATOMIC_ACQUIRE) != 0)
        return &table->of_zero;
    if (!take_place(table, max_keys))
        return &table->rest;
    if (!__atomic_compare_exchange_n(&table->zero, &none, 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        give_place_back(table); /* another thread was quicker */
    return &table->of_zero;
}

/* The aggregate of a key, a new one if there is a place for it. */
static struct attune_keyed *find(struct attune_table *table, uint64_t key, uint32_t max_keys) {
    uint32_t count = buckets(max_keys), at = first_bucket(key, count);
    if (key == 0)
        return of_zero(table, max_keys);
    for (uint32_t i = 0; i < count; i++, at = (at + 1) & (count - 1)) {
        uint64_t there = __atomic_load_n(&table->key[at], __ATOMIC_ACQUIRE);
        if (there == 0) {
            if (!take_place(table, max_keys))
                return &table->rest;
            if (__atomic_compare_exchange_n(&table->key[at], &there, key, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
                return &table->bucket[at];
            give_place_back(table); /* another thread was quicker */
        }
        if (there == key)
            return &table->bucket[at];
    }
    return &table->rest;
}

static void raise_to(uint64_t *mark, uint64_t value) {
    uint64_t now = __atomic_load_n(mark, __ATOMIC_RELAXED);
    while (now < value && !__atomic_compare_exchange_n(mark, &now, value, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

void dm_table_add(const struct attune_program *program, uint64_t key, uint64_t value,
                  uint64_t order, unsigned bucket) {
    const struct dm_mapping *mapping = &dm_live.mapping;
    uint32_t number = program->table - 1; /* 0: beyond every count */
    if (number >= mapping->table_count) {
        dm_lose_no_slot(); /* unmapped (hooks_lockall.c) */
        return;
    }
    uint32_t max_keys = program->max_keys < ATTUNE_KEYS ? program->max_keys : ATTUNE_KEYS;
    struct attune_keyed *sums = find(&mapping->tables[number], key, max_keys);
    unsigned parity = __atomic_load_n(&mapping->header->epoch, __ATOMIC_RELAXED) & 1;
    raise_to(&sums->least[parity], ~order);
    raise_to(&sums->greatest[parity], order);
    __atomic_add_fetch(&sums->histogram[bucket], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&sums->sum, value, __ATOMIC_RELAXED);
    __atomic_add_fetch(&sums->count, 1, __ATOMIC_RELEASE);
}
