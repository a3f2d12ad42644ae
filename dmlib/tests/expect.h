/* SPDX-License-Identifier: Apache-2.0 */
/* What tests end with when something does not hold. */
#ifndef DM_TEST_EXPECT_H
#define DM_TEST_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

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

#endif
