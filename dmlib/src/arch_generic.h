/* SPDX-License-Identifier: Apache-2.0 */
/* Any architecture that has no file of its own: hooks work, stubs do not. */
#ifndef DM_ARCH_GENERIC_H
#define DM_ARCH_GENERIC_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DM_PAGE_SIZE 65536
#define DM_MILLISECOND 1000000ull

static inline uint64_t dm_ticks(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void dm_pause(void) { __asm__ volatile("" ::: "memory"); }

static inline __attribute__((always_inline)) void dm_count_own(uint64_t *count) {
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
}

static inline long dm_syscall6(long number, long a, long b, long c, long d, long e, long f) {
    int saved = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1)
        result = -errno;
    errno = saved;
    return result;
}

static inline bool dm_cpu(uint64_t *cpu) {
    (void)cpu;
    return false;
}

#define DM_STUB_ENTRY ((uintptr_t)0)
#define DM_STUB_UNBOUND ((uintptr_t)0)
#define DM_STUB_SIZE 0u
#define DM_STUB_COUNT 0u
#define DM_PATCH_ENTRY ((uintptr_t)0)
#define DM_PATCH_EXIT ((uintptr_t)0)

#endif
