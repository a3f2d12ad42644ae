/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the start of a packed file, linked without its main. */
#ifndef GLUE_TEST_UNIT_H
#define GLUE_TEST_UNIT_H

#include "../../glue/glue.h"
#include "../expect.h"

/* What pack_check says of a file: NULL if it accepts it. */
const char *complaint(struct pack *pack, const void *bytes, uint64_t size);

/* A packed file in memory, with a stored part and a compressed one. */
struct file {
    unsigned char bytes[1024] __attribute__((aligned(8)));
    uint64_t size;
};
#define STORED_TEXT "as it is\n"
#define DECODED_SIZE 100000 /* of the compressed part, all 'z' */

struct file make_file(void);
struct pack_part *part_of(struct file *file, unsigned number);
struct pack_record *record_of(struct file *file);
/* Makes the checksums of table and record fit again. */
void seal(struct file *file);

void test_hash(void);
void test_format(void);
void test_writing(void);
void test_unpacking(void);
void test_start_ticks(void);
void test_own_filters(void);
void test_job(void);
/* What this program is when it is executed as a rank. */
void run_rank(void);

#endif
