/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that have begun and not ended, see calls.c. */
#ifndef DM_CALLS_H
#define DM_CALLS_H

#include "record.h"

/* A call of hit->point begins; stack is the address of its return address, now as in
 * dm_time. */
DM_HIDDEN void dm_call_begins(const struct dm_hit *hit, uint64_t stack, uint64_t *now,
                              bool (*acquire)(struct dm_thread *));

/* The call of hit->point with this stack ends. True: it is one that has begun,
 * and value, extra, time and duration of hit are its. */
DM_HIDDEN bool dm_call_ends(struct dm_hit *hit, uint64_t stack);

#endif
