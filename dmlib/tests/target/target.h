/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that the tests run under DMLib: `target WHAT [NUMBER...]`. It
 * knows nothing of DMLib and fails if anything is not as it would be without.
 */
#ifndef TARGET_H
#define TARGET_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "target: %s:%d: %s, errno %d\n", __FILE__, __LINE__, #condition,       \
                    errno);                                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* From the command line. */
extern long number[4];
extern const char *self;

/* Hooks are called; errno is to stay as it is. */
void lock_pairs(pthread_mutex_t *mutex, long count);
extern pthread_mutex_t own;

/* What may be asked for; the last one of each has no name. */
struct subject {
    const char *name;
    void (*run)(void);
};
extern const struct subject thread_subjects[], signal_subjects[], process_subjects[],
    resource_subjects[], confined_subjects[];

#endif
