// SPDX-License-Identifier: Apache-2.0
/* Unit test of include/watch.h, compiled natively: it calls no BPF helper. */
#include "watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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

static void test_buckets(void) {
    u64 random = 88172645463325252ull;

    CHECK(histogram_bucket(0) == 0);
    CHECK(histogram_bucket(1) == 1);
    CHECK(histogram_bucket(~0ull) == 63);
    for (int bit = 0; bit < 64; bit++) {
        u64 power = 1ull << bit;

        CHECK(histogram_bucket(power) == plain_bucket(power));
        CHECK(histogram_bucket(power - 1) == plain_bucket(power - 1));
        CHECK(histogram_bucket(power + 1) == plain_bucket(power + 1));
    }
    for (int i = 0; i < 100000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        CHECK(histogram_bucket(random >> (i % 64)) == plain_bucket(random >> (i % 64)));
    }
}

static struct watch fresh(void) {
    struct watch watch = {.max_value = ~0ull};

    watch.extremes[0].min = watch.extremes[1].min = ~0ull;
    return watch;
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

    CHECK(watch_take(&watch, 5, 0) == 0);
    CHECK(watch_take(&watch, 3, 0) == 1);
    CHECK(watch_take(&watch, 900, 1) == 2);
    CHECK(watch.count == 3 && watch.sum == 908);
    CHECK(watch.extremes[0].min == 3 && watch.extremes[0].max == 5);
    CHECK(watch.extremes[1].min == 900 && watch.extremes[1].max == 900);
    CHECK(watch.histogram[2] == 1 && watch.histogram[3] == 1 && watch.histogram[10] == 1);
}

static void test_sampling(void) {
    struct watch watch = fresh();
    int records = 0;

    for (u64 i = 0; i < 1000; i++)
        records += watch_delivers(&watch, i);
    CHECK(records == 0);
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
        watch_take(&shared, 1000 + (first + i * 7919) % HITS, 0);
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
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        in_buckets += shared.histogram[i];
    /* 7919 and HITS have no common divisor: each thread takes every value. */
    CHECK(shared.count == (u64)THREADS * HITS && in_buckets == shared.count);
    CHECK(shared.sum == THREADS * (1000ull * HITS + (u64)HITS * (HITS - 1) / 2));
    CHECK(shared.extremes[0].min == 1000 && shared.extremes[0].max == 1000 + HITS - 1);
}

int main(void) {
    test_buckets();
    test_predicate();
    test_intervals();
    test_sampling();
    test_threads();
    return failures ? 1 : 0;
}
