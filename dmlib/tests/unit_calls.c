/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that begin and end, or do not: recursion, longjmp, too many of them. */
#include <string.h>
#include <sys/mman.h>

#include "calls.h"
#include "unit.h"

#define OUTER 70u
#define INNER 71u

static struct dm_mapping begin(struct attune_header **memory) {
    *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(*memory);
    m.controls[OUTER].word = m.controls[INNER].word = ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION;
    return m;
}

static void enter(unsigned point, uint64_t stack, uint64_t value) {
    struct dm_hit hit = {.point = point, .value = value, .extra = value + 1};
    dm_call_begins(&hit, stack, NULL, dm_thread_acquire);
}

/* Whether a call ends there; its parameter must be the one that it began with. */
static bool leave(unsigned point, uint64_t stack, uint64_t value) {
    struct dm_hit hit = {.point = point, .value = 12345};
    if (!dm_call_ends(&hit, stack))
        return false;
    EXPECT_EQUAL(hit.value, value);
    EXPECT_EQUAL(hit.extra, value + 1);
    EXPECT(hit.time != 0 && (int64_t)hit.duration >= 0);
    return true;
}

static void check_recursion(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    EXPECT(!leave(OUTER, 1000, 0)); /* before there is a slot */
    for (uint64_t depth = 0; depth < 5; depth++)
        enter(depth == 0 ? OUTER : INNER, 1000 - depth * 16, depth);
    EXPECT_EQUAL(m.slots[0].open, 5);
    EXPECT(!leave(OUTER, 936, 0)); /* another point's call has this stack */
    EXPECT(!leave(INNER, 940, 0));
    for (uint64_t depth = 5; depth-- > 0;)
        EXPECT(leave(depth == 0 ? OUTER : INNER, 1000 - depth * 16, depth));
    EXPECT_EQUAL(m.slots[0].open, 0);
    EXPECT(!leave(OUTER, 1000, 0)); /* once */
    free(memory);
}

/* Two points at one function: their calls have the same stack, and end in the other order. */
static void check_same_stack(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    enter(OUTER, 1000, 1);
    enter(INNER, 1000, 2);
    EXPECT(leave(INNER, 1000, 2));
    EXPECT(leave(OUTER, 1000, 1));
    for (uint64_t i = 0; i < 3 * ATTUNE_OPEN_CALLS; i++) { /* left each time, and called again */
        enter(OUTER, 1000, i);
        enter(INNER, 1000, i);
    }
    EXPECT_EQUAL(m.slots[0].open, 2);
    EXPECT(leave(OUTER, 1000, 3 * ATTUNE_OPEN_CALLS - 1)); /* the point of the other has gone */
    EXPECT_EQUAL(m.slots[0].open, 0);
    EXPECT_EQUAL(m.slots[0].lost, 0);
    free(memory);
}

static void check_left_by_longjmp(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    enter(OUTER, 1000, 1);
    enter(INNER, 900, 2);
    enter(INNER, 800, 3);
    EXPECT(leave(OUTER, 1000, 1)); /* the inner ones never return */
    EXPECT_EQUAL(m.slots[0].open, 0);
    EXPECT(!leave(INNER, 900, 2));
    for (uint64_t i = 0; i < 3 * ATTUNE_OPEN_CALLS; i++)
        enter(INNER, 900, i); /* left each time, and called again */
    EXPECT_EQUAL(m.slots[0].open, 1);
    EXPECT(leave(INNER, 900, 3 * ATTUNE_OPEN_CALLS - 1));
    EXPECT_EQUAL(m.slots[0].lost, 0);
    free(memory);
}

/* Where there is no room, calls below the one that begins have been left; if
 * there are none it is not measured, and counted. */
static void check_no_room(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    for (uint64_t i = 0; i < ATTUNE_OPEN_CALLS; i++)
        enter(INNER, 100000 - i * 16, i);
    EXPECT_EQUAL(m.slots[0].open, ATTUNE_OPEN_CALLS);
    enter(OUTER, 16, 7); /* deeper than all */
    EXPECT_EQUAL(m.slots[0].open, ATTUNE_OPEN_CALLS);
    EXPECT_EQUAL(m.slots[0].lost, 1);
    EXPECT(!leave(OUTER, 16, 7));
    enter(OUTER, 100000 - 10 * 16, 8); /* as high as the eleventh: only ten can still end */
    EXPECT_EQUAL(m.slots[0].open, 11);
    EXPECT(leave(OUTER, 100000 - 10 * 16, 8));
    EXPECT(leave(INNER, 100000 - 9 * 16, 9));
    free(memory);
}

/* Room that the second point of a function needs is not taken from the first one's call. */
static void check_no_room_for_second(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    enter(INNER, 1000, 1); /* is left */
    for (uint64_t i = 2; i < ATTUNE_OPEN_CALLS; i++)
        enter(INNER, 100000 - i * 16, i);
    enter(OUTER, 2000, 7);
    EXPECT_EQUAL(m.slots[0].open, ATTUNE_OPEN_CALLS);
    enter(INNER, 2000, 8);
    EXPECT_EQUAL(m.slots[0].open, ATTUNE_OPEN_CALLS);
    EXPECT(leave(INNER, 2000, 8));
    EXPECT(leave(OUTER, 2000, 7));
    EXPECT_EQUAL(m.slots[0].lost, 0);
    free(memory);
}

/* The application, or whoever may write its memory, says that more are open than
 * there can be. */
static void check_nonsense(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    enter(OUTER, 1000, 1);
    m.slots[0].open = UINT32_MAX;
    EXPECT(!leave(OUTER, 1000, 1));
    enter(OUTER, 1000, 2);
    EXPECT_EQUAL(m.slots[0].open, 1);
    EXPECT(leave(OUTER, 1000, 2));
    free(memory);
}

/* A hit within a measurement, as in a signal handler, leaves the calls alone. */
static void check_busy(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    enter(OUTER, 1000, 1);
    uint64_t generation = dm_thread.generation;
    dm_thread.generation = DM_BUSY;
    enter(INNER, 900, 2);
    EXPECT(!leave(OUTER, 1000, 1));
    dm_thread.generation = generation;
    EXPECT_EQUAL(m.slots[0].open, 1);
    EXPECT(leave(OUTER, 1000, 1));
    free(memory);
}

/* Of the calls only those that are due begin: 0, 2, 5, 10, 13 ... The clock is read for
 * no other. */
static void check_due(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    struct dm_hit hit = {.point = OUTER, .word = ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION};
    m.controls[OUTER].sample_mask = 3;
    uint32_t due = 0;
    for (unsigned i = 0; i < 16; i++) {
        dm_call_begins(&hit, 1000, NULL, dm_thread_acquire);
        due |= m.slots[0].open << i;
        EXPECT_EQUAL(dm_call_ends(&hit, 1000), due >> i);
    }
    EXPECT_EQUAL(due, 1 | 1 << 2 | 1 << 5 | 1 << 10 | 1 << 13);
    free(memory);
}

/* Code as the controller makes it for a function with a point: one call of DMLib. */
static uint8_t *make_island(uint32_t number) {
    const uint8_t call[] = {0xff, 0x15, 48 - ATTUNE_ISLAND_CALL, 0, 0, 0, 0xc3};
    uint8_t *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(code != MAP_FAILED);
    memcpy(code, call, sizeof(call));
    memcpy(code + ATTUNE_ISLAND_NUMBER, &number, sizeof(number));
    return code;
}

/* The entry of a function (<) and where it ends (>), with the same stack. */
static DM_NOINLINE void call_island(uint8_t *code, const char *hooks) {
    for (; *hooks != '\0'; hooks++) {
        const uint64_t hook = *hooks == '<' ? DM_PATCH_ENTRY : DM_PATCH_EXIT;
        memcpy(code + 48, &hook, sizeof(hook));
        ((void (*)(void))(uintptr_t)code)();
    }
}

/* A call that is not due, of a function of which some that were due were left, with a call of
 * another one in between. */
static void check_left_when_due(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    struct dm_hit hit = {.point = INNER, .word = ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION};
    m.controls[INNER].sample_mask = 3;
    dm_call_begins(&hit, 900, NULL, dm_thread_acquire);
    EXPECT_EQUAL(m.slots[0].open, 1);
    enter(OUTER, 1000, 1);
    enter(INNER, 900, 2); /* without a step */
    EXPECT_EQUAL(m.slots[0].open, 3);
    dm_call_begins(&hit, 900, NULL, dm_thread_acquire);
    EXPECT(!dm_call_ends(&hit, 900));
    EXPECT(leave(OUTER, 1000, 1));
    EXPECT_EQUAL(m.slots[0].open, 0);
    free(memory);
}

/* One call of DMLib serves the first point and as many more as the number says. */
static void check_points_of_a_function(void) {
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    const uint32_t first = OUTER - ATTUNE_HOOK_COUNT, second = INNER - ATTUNE_HOOK_COUNT;
    uint8_t *code = make_island(first);
    uint32_t *number = (uint32_t *)(void *)(code + ATTUNE_ISLAND_NUMBER);
    number[ATTUNE_ISLAND_BLOCK / sizeof(*number)] = second;
    m.controls[OUTER].word = ATTUNE_CTL_AGGREGATE;
    m.controls[INNER].word = ATTUNE_CTL_EVENT;
    for (uint32_t more = 0; more < 2; more++) {
        number[0] = first | more << 16;
        call_island(code, "<");
        EXPECT_EQUAL(m.slots[0].aggregates[OUTER].count, 1 + more);
        EXPECT_EQUAL(m.slots[0].head, more);
    }
    m.controls[OUTER].word |= ATTUNE_CTL_DURATION;
    m.controls[INNER].word |= ATTUNE_CTL_DURATION;
    call_island(code, "<>");
    EXPECT_EQUAL(m.slots[0].aggregates[OUTER].count, 3);
    EXPECT_EQUAL(m.slots[0].head, 2);
    EXPECT_EQUAL(m.slots[0].open, 0);
    number[0] = second; /* calls 0 and 2 are due, of which the first one is left */
    m.controls[INNER].sample_mask = 3;
    call_island(code, "<<><>");
    EXPECT_EQUAL(m.slots[0].head, 3);
    munmap(code, 4096);
    free(memory);
}

/* What the controller does where it measures at a point again: its calls begin anew. */
static void resume(struct attune_point_control *control, uint32_t word) {
    control->era++;
    control->word = word;
}

/* A call that ends while its point is off is not ended by another one later, which has begun
 * while the point was off. */
static void check_left_in_a_pause(void) {
    const uint32_t timed = ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION;
    struct attune_header *memory;
    struct dm_mapping m = begin(&memory);
    struct attune_point_control *control = &m.controls[INNER];
    const struct attune_aggregate *sums = &m.slots[0].aggregates[INNER];
    uint8_t *code = make_island(INNER - ATTUNE_HOOK_COUNT);
    for (uint64_t i = 0; i < 3 * ATTUNE_OPEN_CALLS; i++) {
        call_island(code, "<");
        control->word = 0;
        call_island(code, "><");
        resume(control, timed);
        call_island(code, ">");
        EXPECT_EQUAL(sums->count, i);
        call_island(code, "<>");
        EXPECT_EQUAL(sums->count, i + 1);
    }
    for (uint64_t i = 0; i < 3 * ATTUNE_OPEN_CALLS; i++) { /* left in each pause */
        call_island(code, "<");
        control->word = 0;
        resume(control, timed);
    }
    EXPECT_EQUAL(m.slots[0].open, 1);
    EXPECT_EQUAL(m.slots[0].lost, 0);
    munmap(code, 4096);
    free(memory);
}

void test_calls(void) {
    check_recursion();
    check_same_stack();
    check_left_by_longjmp();
    check_no_room();
    check_no_room_for_second();
    check_nonsense();
    check_busy();
    check_due();
    check_left_when_due();
    check_points_of_a_function();
    check_left_in_a_pause();
}
