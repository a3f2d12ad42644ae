/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many seccomp filters a process is under. Whoever starts a program with DMLib says in
 * ATTUNE_FILTERS how many it is under itself. A program that is executed under more has been
 * put into a sandbox since, which may kill it for any system call: DMLib makes none there but
 * openat(2), read(2) and close(2), as the loader has just done, to read its own number. Both
 * are in package controller/gate as well, for the controller.
 */
#ifndef ATTUNE_FILTERS_H
#define ATTUNE_FILTERS_H

#include <stdint.h>

#define ATTUNE_STATUS "/proc/self/status"

/* All zeros before the first byte of the file. */
struct attune_filters {
    uint32_t matched; /* so many bytes of the line are those of the name; more: it is another */
    uint32_t count;
};

/* Appends a digit to a number; other bytes leave it as it is. */
static inline uint32_t attune_append(uint32_t number, char digit) {
    return digit >= '0' && digit <= '9' ? number * 10 + (uint32_t)(digit - '0') : number;
}

/* Takes the next byte of the file. */
static inline void attune_count_filters(struct attune_filters *filters, char byte) {
    static const char name[] = "Seccomp_filters:";
    const uint32_t whole = sizeof(name) - 1;
    if (byte == '\n') {
        filters->matched = 0;
    } else if (filters->matched == whole) {
        filters->count = attune_append(filters->count, byte);
    } else if (filters->matched < whole) {
        filters->matched = byte == name[filters->matched] ? filters->matched + 1 : whole + 1;
    }
}

#endif
