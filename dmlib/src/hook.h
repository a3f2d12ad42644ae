/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a hook is made. The exported function costs one load of the process's
 * offset, one of the point's word, one predictable branch, and a jump to the
 * real function. Behind it stands full_NAME, with a frame of its own: safe
 * points, then the real call, with whatever is asked for. The hooks that take
 * nanoseconds are written out where they are and do plain events themselves.
 */
#ifndef DM_HOOK_H
#define DM_HOOK_H

#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "record.h"

/* real.c: where the next library's functions are. Until they were looked up
 * a pointer leads to a function that does so, so the hook need not check. */
#define DM_REAL(result, name, parameters) DM_HIDDEN extern result(*dm_real_##name) parameters;
#include "real.def"
#undef DM_REAL

/* Defines the hook; the body that follows is full_NAME. */
#define DM_HOOK(result, name, point, parameters, arguments)                                        \
    static result full_##name parameters;                                                          \
    DM_EXPORT result name parameters {                                                             \
        if (dm_likely(dm_word(DM_POINT_##point) == 0))                                             \
            return dm_real_##name arguments;                                                       \
        return full_##name arguments;                                                              \
    }                                                                                              \
    static DM_NOINLINE result full_##name parameters

DM_INLINE bool dm_idle(uint64_t asked) { return dm_likely((uint32_t)asked == 0); }

/* Is there something to do before the real call? */
DM_INLINE bool dm_asks_before(uint64_t asked) {
    return dm_unlikely((asked & (DM_CTL_ATTEND | ATTUNE_CTL_DURATION)) != 0);
}

/* First in full_NAME: safe points come before the real call. */
DM_INLINE uint32_t dm_begin(unsigned point, uint32_t family, uint64_t *start) {
    uint32_t word = dm_word(point);
    if (dm_unlikely(word & DM_CTL_ATTEND))
        word = dm_attend(point, family, word);
    if (word & ATTUNE_CTL_DURATION)
        *start = dm_ticks();
    return word;
}

DM_INLINE void dm_end(unsigned point, uint32_t word, uint64_t start, uint64_t value,
                      uint64_t extra) {
    if ((word & DM_CTL_MEASURE) == 0)
        return;
    struct dm_hit hit = {.point = point, .word = word, .value = value, .extra = extra};
    if (word & ATTUNE_CTL_DURATION) {
        hit.time = dm_ticks();
        hit.duration = hit.time - start;
    }
    dm_measure(&hit, dm_thread_acquire);
}

#endif
