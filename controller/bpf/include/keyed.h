/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Aggregates kept apart by a key: a table per watched point with open
 * addressing, of which user space maps the memory. Nothing is ever taken out,
 * so that a place belongs to one key from the moment it was claimed.
 */
#ifndef ATTUNE_KEYED_H
#define ATTUNE_KEYED_H

#include "aggregate.h"

struct keyed {
    u64 key;  /* 0: free, but at the first place               */
    u64 used; /* the first place, which key 0 has for itself   */
    struct aggregate sums;
};

/* A table has a power of two of places, at least twice as many as keys: so
 * many steps from its own place a key is hardly ever, and is then among those
 * that found no place. */
#define KEYED_STEPS 64

/* Where to look for a key. Place 0 is that of key 0, and of no other. */
INLINE u32 keyed_place(u64 key, u32 step, u32 mask) {
    u32 place = (u32)(key * 0x9e3779b97f4a7c15ull >> 32) + step;

    if (!key)
        return 0;
    return place & mask ? place & mask : 1;
}

#endif
