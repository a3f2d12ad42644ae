/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64 with seed 0, from its specification (xxhash.com, doc/xxhash_spec.md).
 * Compiled for speed: it reads the whole file at each start. */
#include "format.h"

#include <string.h>

#define PRIME1 0x9E3779B185EBCA87ull
#define PRIME2 0xC2B2AE3D27D4EB4Full
#define PRIME3 0x165667B19E3779F9ull
#define PRIME4 0x85EBCA77C2B2AE63ull
#define PRIME5 0x27D4EB2F165667C5ull

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t lane(const unsigned char *p) {
    uint64_t value;
    memcpy(&value, p, sizeof(value));
    return value;
}

static uint64_t mix(uint64_t sum, uint64_t input) {
    return rotate(sum + input * PRIME2, 31) * PRIME1;
}

static uint64_t merge(uint64_t sum, uint64_t part) {
    return (sum ^ mix(0, part)) * PRIME1 + PRIME4;
}

/* All stripes of 32 bytes; moves *p behind them. */
static uint64_t stripes(const unsigned char **p, const unsigned char *end) {
    uint64_t a = PRIME1 + PRIME2, b = PRIME2, c = 0, d = -PRIME1;
    const unsigned char *at = *p;
    for (; end - at >= 32; at += 32) {
        a = mix(a, lane(at));
        b = mix(b, lane(at + 8));
        c = mix(c, lane(at + 16));
        d = mix(d, lane(at + 24));
    }
    *p = at;
    uint64_t sum = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    return merge(merge(merge(merge(sum, a), b), c), d);
}

static uint64_t tail(uint64_t sum, const unsigned char *p, const unsigned char *end) {
    for (; end - p >= 8; p += 8)
        sum = rotate(sum ^ mix(0, lane(p)), 27) * PRIME1 + PRIME4;
    if (end - p >= 4) {
        uint32_t word;
        memcpy(&word, p, sizeof(word));
        sum = rotate(sum ^ word * PRIME1, 23) * PRIME2 + PRIME3;
        p += 4;
    }
    for (; p < end; p++)
        sum = rotate(sum ^ *p * PRIME5, 11) * PRIME1;
    return sum;
}

uint64_t xxh64(const void *data, size_t size) {
    const unsigned char *p = data, *end = p + size;
    uint64_t sum = size >= 32 ? stripes(&p, end) : PRIME5;
    sum = tail(sum + size, p, end);
    sum = (sum ^ sum >> 33) * PRIME2;
    sum = (sum ^ sum >> 29) * PRIME3;
    return sum ^ sum >> 32;
}
