/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What depends on the processor, but for the assembly (docs/design/0038):
 *
 *   dm_ticks()          cheap, monotonic, the same on all processors
 *   DM_MILLISECOND      at least so many ticks, for coarse waiting only
 *   dm_pause()          between two looks at a word that another processor writes
 *   dm_count_own(p)     (*p)++, releasing, by the thread that owns it
 *   dm_syscall6(...)    result or -errno; never touches errno
 *   DM_STUB_*           where the GOT stubs are
 */
#ifndef DM_ARCH_X86_64_H
#define DM_ARCH_X86_64_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#define DM_PAGE_SIZE 4096

/* The slowest time-stamp counter worth naming runs at 1 GHz, usual ones at
 * 2 to 4: "10 ms" of a forked child's life are then 10 down to 3. */
#define DM_MILLISECOND 1000000ull

static inline uint64_t dm_ticks(void) { return __builtin_ia32_rdtsc(); }

static inline void dm_pause(void) { __builtin_ia32_pause(); }

/* Adds 1 for readers that acquire. Only the owning thread writes, so that one
 * instruction without a lock is enough, also against its signal handlers;
 * stores are not reordered here. */
static inline __attribute__((always_inline)) void dm_count_own(uint64_t *count) {
    __asm__ volatile("addq $1, %0" : "+m"(*count) : : "cc", "memory");
}

/* The number of the CPU. The kernel keeps it in the limit of a segment, where
 * its own getcpu in the vDSO finds it; a wrong selector is an answer, no fault. */
static inline bool dm_cpu(uint64_t *cpu) {
    uint32_t segment = 15 * 8 + 3, limit = 0;
    bool known;
    __asm__("lsl %2, %1" : "=@ccz"(known), "+r"(limit) : "r"(segment) :);
    *cpu = limit & 0xfff;
    return known;
}

/* The floating point parameters of the function that is being called. Nothing
 * here uses these registers, see the Makefile. */
static inline void dm_real_parameters(uint64_t reals[8]) {
    __asm__ volatile("movq %%xmm0, 0(%0)\n\tmovq %%xmm1, 8(%0)\n\t"
                     "movq %%xmm2, 16(%0)\n\tmovq %%xmm3, 24(%0)\n\t"
                     "movq %%xmm4, 32(%0)\n\tmovq %%xmm5, 40(%0)\n\t"
                     "movq %%xmm6, 48(%0)\n\tmovq %%xmm7, 56(%0)"
                     :
                     : "r"(reals)
                     : "memory");
}

/* Not syscall(3): that writes errno, and a hook must leave errno alone. */
static inline long dm_syscall6(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* stubs_x86_64.S */
extern const char dm_stub_code[] __attribute__((visibility("hidden")));
extern const char dm_stub_code_end[] __attribute__((visibility("hidden")));
#define DM_STUB_ENTRY ((uintptr_t)dm_stub_code)
extern const char dm_stub_unbound[] __attribute__((visibility("hidden")));
#define DM_STUB_UNBOUND ((uintptr_t)dm_stub_unbound)
#define DM_STUB_SIZE 64u
#define DM_STUB_COUNT 192u

/* Islands call them; no functions of the calling convention: they change
 * nothing, neither scratch registers nor flags. */
extern const char dm_patch_entry[] __attribute__((visibility("hidden")));
#define DM_PATCH_ENTRY ((uintptr_t)dm_patch_entry)
extern const char dm_patch_exit[] __attribute__((visibility("hidden")));
#define DM_PATCH_EXIT ((uintptr_t)dm_patch_exit)

/* Calls function(argument) and gives it to the caller with all vector
 * registers as they were: a stub stands before a function whose arguments may
 * be in them. */
int dm_preserving_vectors(int (*function)(void *), void *argument)
    __attribute__((visibility("hidden")));

#endif
