/* SPDX-License-Identifier: Apache-2.0 */
#include "hook.h"

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

#define BEGIN(point)                                                                               \
    uint64_t start = 0;                                                                            \
    uint32_t word = dm_begin(DM_POINT_##point, ATTUNE_AT_ALLOC, &start)
#define END(point, value, extra, ...)                                                              \
    DM_END(DM_POINT_##point, word, start, value, extra, true, __VA_ARGS__)

static DM_NOINLINE void *full_malloc(size_t size) {
    BEGIN(malloc);
    void *result = dm_real_malloc(size);
    END(malloc, size, address_of(result), result, size);
    return result;
}

static DM_NOINLINE void *hot_malloc(size_t size, uint64_t asked) {
    const unsigned point = DM_POINT_malloc;
    if (dm_asks_before(asked))
        return full_malloc(size);
    void *result = dm_real_malloc(size);
    uint64_t address = address_of(result);
    const struct attune_point_control *control = dm_control(point);
    asked = dm_asked(control); /* another point may be there by now */
    if (dm_likely(dm_hot(point, control, asked, size, address, NULL)) ||
        dm_warm(point, control, asked, size))
        return result;
    return (void *)(uintptr_t)dm_late(point, size, address, address);
}

DM_EXPORT void *malloc(size_t size) {
    uint64_t asked = dm_asked(dm_control(DM_POINT_malloc));
    return dm_idle(asked) ? dm_real_malloc(size) : hot_malloc(size, asked);
}

static DM_NOINLINE void full_free(void *address) {
    BEGIN(free);
    /* Afterwards only for its duration: by then another thread may have got,
     * and recorded, the same address. */
    if (word & DM_CTL_TIMES) {
        dm_real_free(address);
        END(free, address_of(address), 0, 0, address_of(address));
    } else {
        DM_END(DM_POINT_free, word, start, address_of(address), 0, false, 0, address);
        dm_real_free(address);
    }
}

static DM_NOINLINE void warm_free(void *address, const struct attune_point_control *control) {
    if (dm_warm(DM_POINT_free, control, dm_asked(control), address_of(address)))
        return dm_real_free(address);
    full_free(address);
}

DM_EXPORT void free(void *address) {
    const unsigned point = DM_POINT_free;
    const struct attune_point_control *control = dm_control(point);
    uint64_t asked = dm_asked(control);
    if (dm_idle(asked) || dm_likely(dm_hot(point, control, asked, address_of(address), 0, NULL)))
        return dm_real_free(address);
    warm_free(address, control);
}

DM_HOOK(void *, calloc, calloc, (size_t count, size_t size), (count, size)) {
    BEGIN(calloc);
    void *result = dm_real_calloc(count, size);
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = UINT64_MAX;
    END(calloc, bytes, address_of(result), result, count, size);
    return result;
}

DM_HOOK(void *, realloc, realloc, (void *address, size_t size), (address, size)) {
    BEGIN(realloc);
    uint64_t was = address_of(address); /* not to be used as a pointer any more */
    void *result = dm_real_realloc(address, size);
    END(realloc, size, address_of(result), result, was, size);
    return result;
}

DM_HOOK(void *, memalign, memalign, (size_t alignment, size_t size), (alignment, size)) {
    BEGIN(memalign);
    void *result = dm_real_memalign(alignment, size);
    END(memalign, size, address_of(result), result, alignment, size);
    return result;
}

DM_HOOK(void *, aligned_alloc, aligned_alloc, (size_t alignment, size_t size), (alignment, size)) {
    BEGIN(aligned_alloc);
    void *result = dm_real_aligned_alloc(alignment, size);
    END(aligned_alloc, size, address_of(result), result, alignment, size);
    return result;
}

DM_HOOK(int, posix_memalign, posix_memalign, (void **place, size_t alignment, size_t size),
        (place, alignment, size)) {
    BEGIN(posix_memalign);
    int result = dm_real_posix_memalign(place, alignment, size);
    END(posix_memalign, size, result == 0 ? address_of(*place) : 0, result, place, alignment, size);
    return result;
}
