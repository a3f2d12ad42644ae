// SPDX-License-Identifier: Apache-2.0
/* Unit test of include/watch.h and ring.h, compiled natively: they call no BPF
 * helper. */
#include "ring.h"
#include "watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static u32 plain_bucket(u64 value) {
    u32 width = value ? 64 - (u32)__builtin_clzll(value) : 0;

    return width > 63 ? 63 : width;
}

static u32 bucket(u64 value) { return attune_bucket(value, false); }

static void test_buckets(void) {
    u64 random = 88172645463325252ull;

    CHECK(bucket(0) == 0);
    CHECK(bucket(1) == 1);
    CHECK(bucket(~0ull) == 63);
    for (int bit = 0; bit < 64; bit++) {
        u64 power = 1ull << bit;

        CHECK(bucket(power) == plain_bucket(power));
        CHECK(bucket(power - 1) == plain_bucket(power - 1));
        CHECK(bucket(power + 1) == plain_bucket(power + 1));
    }
    for (int i = 0; i < 100000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        CHECK(bucket(random >> (i % 64)) == plain_bucket(random >> (i % 64)));
    }
}

static struct watch fresh(void) { return (struct watch){.max_value = ~0ull}; }

/* One hit of an unsigned value, as the programs take it. */
static void take(struct watch *watch, u64 value, u32 interval) {
    attune_add(&watch->sums, value, false, interval);
}

static void test_predicate(void) {
    struct watch watch = fresh();

    watch.min_value = 10, watch.max_value = 20;
    CHECK(!watch_wants(&watch, 9));
    CHECK(watch_wants(&watch, 10));
    CHECK(watch_wants(&watch, 20));
    CHECK(!watch_wants(&watch, 21));
}

static void test_intervals(void) {
    struct watch watch = fresh();

    take(&watch, 5, 0);
    take(&watch, 3, 0);
    take(&watch, 900, 1);
    const struct attune_aggregate *sums = &watch.sums;
    CHECK(sums->count == 3 && sums->sum == 908);
    CHECK(~sums->least[0] == 3 && sums->greatest[0] == 5);
    CHECK(~sums->least[1] == 900 && sums->greatest[1] == 900);
    CHECK(sums->histogram[2] == 1 && sums->histogram[3] == 1 && sums->histogram[10] == 1);
}

static void test_signed(void) {
    struct watch watch = fresh();
    const struct attune_aggregate *sums = &watch.sums;

    for (s64 value = -5; value <= 4; value++)
        attune_add(&watch.sums, (u64)value, true, 0);
    CHECK((s64)sums->sum == -5);
    CHECK((s64)(~sums->least[0] ^ ATTUNE_SIGN) == -5);
    CHECK((s64)(sums->greatest[0] ^ ATTUNE_SIGN) == 4);
    CHECK(sums->histogram[0] == 6 && sums->histogram[1] == 1 && sums->histogram[3] == 1);
}

static void test_sampling(void) {
    struct watch watch = fresh();
    int records = 0;

    for (u64 i = 0; i < 1000; i++)
        records += watch_delivers(&watch, watch_count(&watch));
    CHECK(records == 0 && watch.sums.count == 1000);
    watch.flags = WATCH_EVENT;
    watch.sample_mask = 63;
    for (u64 i = 0; i < 1000; i++)
        records += watch_delivers(&watch, i);
    CHECK(records == 16);
}

enum { THREADS = 4, HITS = 200000 };

static struct watch shared;

static void *hit(void *argument) {
    u64 first = *(u64 *)argument;

    for (u64 i = 0; i < HITS; i++)
        take(&shared, 1000 + (first + i * 7919) % HITS, 0);
    return NULL;
}

static void test_threads(void) {
    pthread_t threads[THREADS];
    u64 first[THREADS], in_buckets = 0;

    shared = fresh();
    for (int i = 0; i < THREADS; i++) {
        first[i] = (u64)i * 31;
        if (pthread_create(&threads[i], NULL, hit, &first[i]))
            abort();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (u32 i = 0; i < ATTUNE_HIST_BUCKETS; i++)
        in_buckets += shared.sums.histogram[i];
    /* 7919 and HITS have no common divisor: each thread takes every value. */
    CHECK(shared.sums.count == (u64)THREADS * HITS && in_buckets == shared.sums.count);
    CHECK(shared.sums.sum == THREADS * (1000ull * HITS + (u64)HITS * (HITS - 1) / 2));
    CHECK(~shared.sums.least[0] == 1000 && shared.sums.greatest[0] == 1000 + HITS - 1);
}

enum { RING = 4096, RECORDS = 100000 };

static struct ring ring;
static unsigned char ring_bytes[RING + RING_RECORD_MAX];

/* Writes records of 16 to 1,024 bytes, each full of its first number. */
static void *write_records(void *argument) {
    u32 process = *(u32 *)argument;
    u64 position;

    for (u32 i = 0; i < RECORDS; i++) {
        u32 length = 16 + 8 * (i % 127);
        u64 *record;

        if (!ring_reserve(&ring, RING, length, &position))
            continue;
        record = (u64 *)(ring_bytes + (position & (RING - 1)));
        for (u32 word = 1; word < length / 8; word++)
            record[word] = (u64)process << 32 | i;
        ring_commit(record, RING_WORD(length, process));
    }
    return NULL;
}

/* As the reader in Go: one record, if there is one. */
static bool read_record(u64 *process, u64 *number) {
    u64 tail = ring.tail, *record = (u64 *)(ring_bytes + (tail & (RING - 1)));
    u64 word = __atomic_load_n(record, __ATOMIC_ACQUIRE);
    u32 length = (u32)word;

    if (!word)
        return false;
    CHECK(length % 8 == 0 && length >= 16 && length <= RING_RECORD_MAX);
    *process = word >> 32, *number = record[1] & 0xffffffff;
    for (u32 i = 1; i < length / 8; i++)
        CHECK(record[i] == (*process << 32 | *number));
    memset(record, 0, length);
    __atomic_store_n(&ring.tail, tail + length, __ATOMIC_RELEASE);
    return true;
}

/* Everything that was not read is counted as lost, and nothing is torn. */
static void test_ring(void) {
    pthread_t threads[THREADS];
    u32 ids[THREADS];
    u64 next[THREADS + 1] = {0}, read = 0, process, number;

    for (u32 i = 0; i < THREADS; i++) {
        ids[i] = i + 1;
        if (pthread_create(&threads[i], NULL, write_records, &ids[i]))
            abort();
    }
    while (read + __atomic_load_n(&ring.lost, __ATOMIC_RELAXED) < (u64)THREADS * RECORDS) {
        if (!read_record(&process, &number))
            continue;
        CHECK(process >= 1 && process <= THREADS && number >= next[process]);
        next[process] = number + 1;
        read++;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(!read_record(&process, &number));
    CHECK(read > 0 && read + ring.lost == (u64)THREADS * RECORDS);
}

static void test_ring_is_full(void) {
    u64 position;

    memset(&ring, 0, sizeof(ring));
    for (u32 i = 0; i < RING / 64; i++)
        CHECK(ring_reserve(&ring, RING, 64, &position) && position == 64ull * i);
    CHECK(!ring_reserve(&ring, RING, 8, &position) && ring.lost == 1);
    ring.tail = 64;
    CHECK(!ring_reserve(&ring, RING, 72, &position) && ring.lost == 2);
    CHECK(ring_reserve(&ring, RING, 64, &position) && position == RING);
}

int main(void) {
    test_buckets();
    test_predicate();
    test_intervals();
    test_signed();
    test_sampling();
    test_threads();
    test_ring();
    test_ring_is_full();
    return failures ? 1 : 0;
}
