/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests link DMLib's files without its hooks, so that the sanitizers can
 * stand in the allocator's place. A memory file is plain memory here.
 */
#ifndef DM_TEST_UNIT_H
#define DM_TEST_UNIT_H

#include "expect.h"
#include "record.h"

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
void test_claims(void);
void test_memory(void);
void test_stubs(void);
void test_programs(void);
void test_tables(void);
void test_calls(void);
void test_hits(void);

#endif
