/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a hook is made. The exported function is DM_HOOK: one load of the
 * process's offset, one of the point's word, one predictable branch, and a
 * jump to the real function. The function that measures stands beside it and
 * has a frame of its own, so that the idle way needs none.
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

#define DM_HOOK(result, name, point, parameters, arguments)                                        \
    static result traced_##name parameters;                                                        \
    DM_EXPORT result name parameters {                                                             \
        if (dm_likely(dm_word(DM_POINT_##point) == 0))                                             \
            return dm_real_##name arguments;                                                       \
        return traced_##name arguments;                                                            \
    }                                                                                              \
    static DM_NOINLINE result traced_##name parameters

/* First in a measuring function: safe points come before the real call. */
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
    struct dm_sample sample = {.value = value, .extra = extra, .start = start};
    if (word & ATTUNE_CTL_DURATION)
        sample.end = dm_ticks();
    dm_measure(point, word, &sample, dm_thread_acquire);
}

#endif
