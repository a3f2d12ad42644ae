/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests link DMLib's files without its hooks, so that the sanitizers can
 * stand in the allocator's place. A memory file is plain memory here.
 */
#ifndef DM_TEST_UNIT_H
#define DM_TEST_UNIT_H

#include <stdio.h>
#include <stdlib.h>

#include "record.h"

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "FAIL: %s:%d: %s\n", __FILE__, __LINE__, #condition);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define EXPECT_EQUAL(got, wanted)                                                                  \
    do {                                                                                           \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                          \
        if (got_ != wanted_) {                                                                     \
            fprintf(stderr, "FAIL: %s:%d: %s: got %lld, want %lld\n", __FILE__, __LINE__, #got,    \
                    got_, wanted_);                                                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A memory file with a good header; the caller frees it. */
struct attune_header *make_memory(uint32_t slots, uint32_t rings, uint32_t records);
/* Makes it this process's; every point admits all values. */
struct dm_mapping use_memory(struct attune_header *memory);
/* What a hook does with a hit. */
void hit(unsigned point, uint64_t value, uint64_t extra);

void test_layout(void);
void test_environment(void);
void test_records(void);
void test_aggregates(void);
void test_threads(void);
void test_mailbox(void);
void test_memory(void);
void test_stubs(void);
void test_programs(void);
void test_tables(void);
void test_calls(void);

#endif
