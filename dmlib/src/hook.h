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
DM_HIDDEN extern void (*dm_libc_free)(void *);
DM_HIDDEN extern void *(*dm_libc_realloc)(void *, size_t);

/* Defines the hook; the body that follows is full_NAME. */
#define DM_HOOK(result, name, point, parameters, arguments)                                        \
    DM_HOOK_AS(DM_EXPORT, name, result, name, point, parameters, arguments)

/* One to which GOT slots are led on demand (struct attune_hook_entry). */
#define DM_LED_HOOK(result, name, point, parameters, arguments)                                    \
    DM_HOOK_AS(static, hook_##name, result, name, point, parameters, arguments)

#define DM_HOOK_AS(storage, hook, result, name, point, parameters, arguments)                      \
    static result full_##name parameters;                                                          \
    storage result hook parameters {                                                               \
        if (dm_likely(dm_word(DM_POINT_##point) == 0))                                             \
            return dm_real_##name arguments;                                                       \
        return full_##name arguments;                                                              \
    }                                                                                              \
    static DM_NOINLINE result full_##name parameters

DM_INLINE bool dm_idle(uint64_t asked) { return dm_likely((uint32_t)asked == 0); }

/* Is there something that only full_NAME does? */
DM_INLINE bool dm_asks_before(uint64_t asked) {
    const uint32_t before =
        DM_CTL_ATTEND | ATTUNE_CTL_DURATION | ATTUNE_CTL_PROGRAM | ATTUNE_CTL_SHARED;
    return dm_unlikely((asked & before) != 0);
}

/* First in full_NAME: safe points come before the real call. */
DM_INLINE uint32_t dm_begin(unsigned point, uint32_t family, uint64_t *start) {
    uint32_t word = dm_word(point);
    if (dm_unlikely(word & DM_CTL_ATTEND))
        word = dm_attend(point, family, word);
    uint32_t mask = dm_control(point)->sample_mask;
    if (dm_unlikely(mask != 0) && dm_passes_by(word) && dm_passed_by(point, mask))
        word &= ~(DM_CTL_MEASURE | ATTUNE_CTL_PROGRAM | ATTUNE_CTL_DURATION);
    if (word & DM_CTL_TIMES)
        *start = dm_ticks();
    return word;
}

DM_INLINE void dm_end(unsigned point, uint32_t word, uint64_t start, uint64_t value, uint64_t extra,
                      const struct dm_call *call) {
    if ((word & (DM_CTL_MEASURE | ATTUNE_CTL_SHARED)) == 0)
        return;
    struct dm_hit hit = {.point = point, .value = value, .extra = extra, .call = call};
    if (word & DM_CTL_TIMES) {
        hit.time = dm_ticks();
        hit.duration = hit.time - start;
    }
    if (word & DM_CTL_MEASURE)
        dm_measure_ended(&hit, word);
    if (dm_unlikely(word & ATTUNE_CTL_SHARED))
        dm_share(&hit, word);
}

#define DM_ARGUMENTS(a, b, c, d, ...)                                                              \
    { (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d) }

/* Last in full_NAME, after the real call or, where has_result is false, before
 * it. The arguments are looked at only for a program, which sharers may have. */
#define DM_END(point, word, start, value, extra, has_result, result, ...)                          \
    do {                                                                                           \
        if (dm_likely(((word) & (ATTUNE_CTL_PROGRAM | ATTUNE_CTL_SHARED)) == 0)) {                 \
            dm_end(point, word, start, value, extra, NULL);                                        \
            break;                                                                                 \
        }                                                                                          \
        struct dm_call call_ = {                                                                   \
            .has_integers = true,                                                                  \
            .integers = DM_ARGUMENTS(__VA_ARGS__, 0, 0, 0, 0),                                     \
            .call_site = (uint64_t)(uintptr_t)__builtin_return_address(0),                         \
            .has_returned = (has_result),                                                          \
            .returned = (uint64_t)(result),                                                        \
        };                                                                                         \
        dm_end(point, word, start, value, extra, &call_);                                          \
    } while (0)

#endif
