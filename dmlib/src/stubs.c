/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the stubs: a GOT slot that the controller pointed at one
 * leads here first and then to the function it named before. */
#include "calls.h"

#include <cpuid.h>
#include <errno.h>

#include "stubs_x86_64.h"

/* As stubs_x86_64.S pushes them. */
struct stub_registers {
    uint64_t r11, r10, rdi, rsi, rdx, rcx, r8, r9, flags, rax;
};

DM_HIDDEN void dm_stub_hit(uint64_t index, const struct stub_registers *registers);
DM_HIDDEN void dm_patch_hit(const uint32_t *number, const struct stub_registers *registers);
DM_HIDDEN void dm_patch_left(const uint32_t *number, const struct stub_registers *registers);

/* Never changes once it is bound: a child or a copied function pointer may
 * still come through. The controller may bind in the start gate. */
uint64_t dm_stub_target[ATTUNE_STUB_COUNT];

/* What XSAVE shall keep: x87, SSE, AVX, AVX-512; 0: FXSAVE only. */
DM_HIDDEN uint32_t dm_vector_state;

#define VECTOR_STATE 0xe7u

void dm_stub_prepare(void) {
    for (unsigned i = 0; i < ATTUNE_STUB_COUNT; i++)
        if (dm_stub_target[i] == 0)
            dm_stub_target[i] = DM_STUB_UNBOUND;
}

/* Where a stub is used for the first time, not in every process: a virtual machine
 * takes 10 µs to answer CPUID. */
static void know_vector_state(void) {
    static bool known;
    uint32_t a, b, c, d;
    if (__atomic_load_n(&known, __ATOMIC_ACQUIRE))
        return;
    __cpuid(1, a, b, c, d);
    if ((c & bit_OSXSAVE) != 0) {
        __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        __atomic_store_n(&dm_vector_state, a & VECTOR_STATE, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&known, true, __ATOMIC_RELEASE);
}

static int preserving_vectors(int (*function)(void *), void *argument) {
    know_vector_state();
    return dm_preserving_vectors(function, argument);
}

int dm_stub_bind(uint64_t index, uint64_t function) {
    uint64_t unbound = DM_STUB_UNBOUND;
    uint8_t probe;
    if (index >= ATTUNE_STUB_COUNT)
        return EINVAL;
    if (function - DM_STUB_ENTRY < (uint64_t)(dm_stub_code_end - dm_stub_code))
        return EINVAL; /* would go round for ever */
    if (dm_memory_copy(&probe, function, sizeof(probe)) != sizeof(probe))
        return EFAULT;
    if (__atomic_compare_exchange_n(&dm_stub_target[index], &unbound, function, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return 0;
    return unbound == function ? 0 : EBUSY;
}

static int acquire_job(void *thread) { return dm_thread_acquire(thread); }

static bool acquire(struct dm_thread *thread) {
    return preserving_vectors(acquire_job, thread) != 0;
}

static int attend_job(void *argument) {
    const struct dm_safe_point *here = argument;
    return (int)dm_attend_at(here, dm_word(here->point));
}

/* Attends to the safe point before a call. Returns the bits left of the word. */
static DM_NOINLINE uint32_t before_call(unsigned point, uint32_t family) {
    struct dm_safe_point here = {.point = point, .family = family};
    return (uint32_t)preserving_vectors(attend_job, &here);
}

/* The parameters lie in the order of the calling convention; what the controller says
 * wrongly still is a register. */
DM_INLINE uint64_t parameter(const struct stub_registers *registers, uint32_t number) {
    return (&registers->rdi)[number & 7];
}

/* Where the return address of the call lies: behind the registers was pushed the
 * stub's number or the way back to the island. */
DM_INLINE uint64_t stack_of(const struct stub_registers *registers) {
    return (uint64_t)(uintptr_t)(registers + 1) + 8;
}

/* What a program may ask for is collected only for one. */
static DM_NOINLINE void program_hit(unsigned point, uint32_t word, uint64_t value,
                                    const struct stub_registers *registers) {
    uint64_t reals[8];
    dm_real_parameters(reals);
    struct dm_call call = {.has_integers = true,
                           .reals = reals,
                           .call_site = *(const uint64_t *)(uintptr_t)stack_of(registers)};
    for (uint32_t i = 0; i < sizeof(call.integers) / sizeof(call.integers[0]); i++)
        call.integers[i] = parameter(registers, i);
    struct dm_hit hit = {
        .point = point, .word = word, .value = value, .extra = registers->rsi, .call = &call};
    dm_measure(&hit, acquire);
}

/* Whatever at_once left over. A stub does not see the return: a duration cannot be had
 * there. now is as in dm_time. */
static DM_NOINLINE void full_hit(unsigned point, uint32_t family,
                                 const struct stub_registers *registers, uint64_t *now) {
    uint32_t word = dm_word(point);
    if (dm_unlikely(word & DM_CTL_ATTEND))
        word = before_call(point, family);
    if ((word & DM_CTL_MEASURE) == 0)
        return;
    uint64_t value = parameter(registers, dm_control(point)->parameter);
    struct dm_hit hit = {.point = point, .word = word, .value = value, .extra = registers->rsi};
    if (word & ATTUNE_CTL_DURATION && family == ATTUNE_AT_PATCH)
        return dm_call_begins(&hit, stack_of(registers), now, acquire);
    hit.word &= ~ATTUNE_CTL_DURATION;
    if (word & ATTUNE_CTL_PROGRAM)
        return program_hit(point, hit.word, value, registers);
    dm_measure(&hit, acquire);
}

/* True: the hit is dealt with, without a call. */
DM_INLINE bool at_once(unsigned point, const struct attune_point_control *control, uint64_t asked,
                       uint64_t value, uint64_t extra, uint64_t *now) {
    if ((uint32_t)asked == ATTUNE_CTL_AGGREGATE)
        return dm_sum(point, control, value);
    return dm_hot(point, control, asked, value, extra, now);
}

/* What stubs_x86_64.S has not dealt with: another parameter than the first, or several
 * points, may still need no call. */
DM_INLINE void stub_hit(unsigned point, uint32_t family, const struct stub_registers *registers,
                        uint64_t *now) {
    const struct attune_point_control *control = dm_control(point);
    uint64_t asked = dm_asked(control);
    if ((uint32_t)asked == 0 ||
        at_once(point, control, asked, parameter(registers, control->parameter), registers->rsi,
                now))
        return;
    full_hit(point, family, registers, now);
}

void dm_stub_hit(uint64_t index, const struct stub_registers *registers) {
    stub_hit(ATTUNE_HOOK_COUNT + (unsigned)index, ATTUNE_AT_STUB, registers, NULL);
}

/* The numbers of a function's points, as ATTUNE_ISLAND_NUMBER says, come from memory that
 * only the controller writes. */
DM_INLINE uint32_t point_of(uint32_t number) { return number & UINT16_MAX; }
DM_INLINE uint32_t points_behind(uint32_t number) { return number >> 16; }
DM_INLINE const uint32_t *number_behind(const uint32_t *number, uint32_t points) {
    return number + points * (ATTUNE_ISLAND_BLOCK / sizeof(*number));
}

/* They read the clock once. */
static DM_NOINLINE void hit_each(const uint32_t *number, const struct stub_registers *registers) {
    uint64_t now = 0;
    for (uint32_t left = points_behind(*number) + 1; left > 0;
         left--, number = number_behind(number, 1))
        if (dm_likely(point_of(*number) < ATTUNE_STUB_COUNT))
            stub_hit(ATTUNE_HOOK_COUNT + point_of(*number), ATTUNE_AT_PATCH, registers, &now);
}

/* One point is served in place, without what a loop has to keep. */
void dm_patch_hit(const uint32_t *number, const struct stub_registers *registers) {
    if (dm_unlikely(points_behind(*number) != 0))
        return hit_each(number, registers);
    if (dm_likely(*number < ATTUNE_STUB_COUNT))
        stub_hit(ATTUNE_HOOK_COUNT + *number, ATTUNE_AT_PATCH, registers, NULL);
}

/* At a return the parameters are gone. */
static DM_NOINLINE void measure_returned(struct dm_hit *hit,
                                         const struct stub_registers *registers) {
    if ((hit->word & ATTUNE_CTL_PROGRAM) == 0)
        return dm_measure(hit, acquire);
    uint64_t reals[8];
    struct dm_call call = {.call_site = *(const uint64_t *)(uintptr_t)stack_of(registers),
                           .has_returned = true,
                           .returned = registers->rax,
                           .has_real = true};
    dm_real_parameters(reals);
    call.real_returned = reals[0]; /* the same register */
    hit->call = &call;
    dm_measure(hit, acquire);
}

static DM_NOINLINE void full_left(unsigned point, const struct stub_registers *registers) {
    uint32_t word = dm_word(point) & ~DM_CTL_ATTEND;
    if ((word & DM_CTL_MEASURE) == 0)
        return;
    struct dm_hit hit = {.point = point, .word = word, .value = registers->rax};
    if (word & ATTUNE_CTL_DURATION) {
        hit.due = true;
        if (!dm_call_ends(&hit, stack_of(registers)))
            return;
        if (word == (ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION) &&
            dm_sum(point, dm_control(point), hit.duration))
            return;
    }
    measure_returned(&hit, registers);
}

/* A call ends. It is no safe point: whatever holds the process up comes while it
 * is still in the function. */
DM_INLINE void point_left(unsigned point, const struct stub_registers *registers) {
    const struct attune_point_control *control = dm_control(point);
    uint64_t asked = dm_asked(control) & ~(uint64_t)DM_CTL_ATTEND;
    bool timed = (asked & ATTUNE_CTL_DURATION) != 0;
    if (timed || !at_once(point, control, asked, registers->rax, 0, NULL))
        full_left(point, registers);
}

/* What began last ends first, as calls.c takes it. */
static DM_NOINLINE void each_left(const uint32_t *number, const struct stub_registers *registers) {
    for (uint32_t left = points_behind(*number) + 1; left-- > 0;) {
        uint32_t point = point_of(*number_behind(number, left));
        if (dm_likely(point < ATTUNE_STUB_COUNT))
            point_left(ATTUNE_HOOK_COUNT + point, registers);
    }
}

void dm_patch_left(const uint32_t *number, const struct stub_registers *registers) {
    if (dm_unlikely(points_behind(*number) != 0))
        return each_left(number, registers);
    if (dm_likely(*number < ATTUNE_STUB_COUNT))
        point_left(ATTUNE_HOOK_COUNT + *number, registers);
}
