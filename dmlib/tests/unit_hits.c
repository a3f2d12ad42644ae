/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in assembly at islands and stubs does what C does, and changes nothing that
 * it should not. */
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "unit.h"

#define PATCHED 70u /* its hits come through an island, */
#define STUB 71u    /* through a stub, */
#define HOOKED 72u  /* and as those of hooks */
#define RECORDED 73u

#define FLAGS 0x8d5u /* carry, parity, adjust, zero, sign, overflow */
#define TRAP 0x100   /* SIGTRAP before each instruction */

struct registers {
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15, flags;
};

/* Calls a function with these registers, and notes what they are when it returns. */
void call_with(struct registers *registers, const void *function);
extern const char call_returned[];
void returns_at_once(void);

#define EACH(move)                                                                                 \
    move("%rax", "0") move("%rbx", "8") move("%rcx", "16") move("%rdx", "24") move("%rsi", "32")   \
        move("%rbp", "48") move("%r8", "56") move("%r9", "64") move("%r10", "72")                  \
            move("%r11", "80") move("%r12", "88") move("%r13", "96") move("%r14", "104")           \
                move("%r15", "112")
#define LOAD(name, offset) "movq " offset "(%rdi), " name "\n"
#define STORE(name, offset) "movq " name ", " offset "(%rdi)\n"

__asm__(
    ".text\n"
    ".globl returns_at_once\n"
    "returns_at_once: ret\n"
    ".globl call_with\n"
    "call_with:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "subq $8, %rsp\npushq %rsi\npushq %rdi\n"
    "pushq 120(%rdi)\npopfq\n" EACH(
        LOAD) "movq 40(%rdi), %rdi\n"
              "call *8(%rsp)\n"
              "call_returned:\n"
              "pushq %rdi\nmovq 8(%rsp), %rdi\n" EACH(
                  STORE) "popq 40(%rdi)\npushfq\npopq 120(%rdi)\n"
                         "leaq 24(%rsp), %rsp\n"
                         "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

/* Code as the controller makes it at an entry or exit. */
static uint8_t *make_island(unsigned point, uint64_t hook) {
    const uint8_t call[] = {0xff, 0x15, 48 - ATTUNE_ISLAND_CALL, 0, 0, 0, 0xc3};
    const uint32_t number = point - ATTUNE_HOOK_COUNT;
    uint8_t *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(code != MAP_FAILED);
    memcpy(code, call, sizeof(call));
    memcpy(code + ATTUNE_ISLAND_NUMBER, &number, sizeof(number));
    memcpy(code + 48, &hook, sizeof(hook));
    return code;
}

static struct registers make_registers(uint64_t value, uint64_t flags) {
    struct registers r = {.flags = flags | 0x202, .rdi = value, .rsi = ~value, .rdx = value + 2};
    r.rcx = value + 3, r.r8 = value + 4, r.r9 = value + 5;
    r.rax = 1, r.rbx = 2, r.rbp = 3, r.r10 = 4, r.r11 = 5;
    r.r12 = 6, r.r13 = 7, r.r14 = 8, r.r15 = 9;
    return r;
}

/* The call of a function, through an island or its stub: PLTs may change r11 and flags. */
static void call_function(const void *function, bool stub, uint64_t value, uint64_t flags) {
    struct registers before = make_registers(value, flags), after = before;
    call_with(&after, function);
    if (stub)
        after.r11 = before.r11, after.flags = before.flags;
    EXPECT(memcmp(&after, &before, sizeof(after)) == 0);
}

static uint64_t parameter_of(const struct attune_point_control *control, uint64_t value) {
    struct registers r = make_registers(value, 0);
    const uint64_t parameters[] = {r.rdi, r.rsi, r.rdx, r.rcx, r.r8, r.r9};
    return parameters[control->parameter];
}

static void expect_same_records(const struct dm_mapping *m, uint64_t begin) {
    const struct attune_slot *slot = &m->slots[0];
    uint64_t records = slot->head - begin, each = records / 3;
    EXPECT_EQUAL(records % 3, 0);
    for (uint64_t i = 0; i < each * 3; i++) {
        const struct attune_record *r = &m->rings[begin + i], *first = &m->rings[begin + i - i % 3];
        EXPECT_EQUAL(r->point, PATCHED + i % 3);
        EXPECT(r->value == first->value && r->extra == first->extra);
        EXPECT_EQUAL(r->flags, first->flags);
        EXPECT(r->thread == 0 && r->time >= first->time && first->time != 0);
    }
}

/* Counts and records calls of three points with the same settings. */
static void check_same(const struct attune_point_control *control, const uint8_t *island) {
    static const uint64_t values[] = {0, 1, 2, 3, 100, INT64_MAX, 1ull << 63, UINT64_MAX, 7};
    const void *stub = (const void *)(DM_STUB_ENTRY + (STUB - ATTUNE_HOOK_COUNT) * DM_STUB_SIZE);
    struct attune_header *memory = make_memory(1, 1, 64);
    struct dm_mapping m = use_memory(memory);
    m.controls[PATCHED] = m.controls[STUB] = m.controls[HOOKED] = *control;
    for (size_t i = 0; i < 2 * sizeof(values) / sizeof(values[0]); i++) {
        uint64_t value = values[i / 2];
        memory->epoch = (uint32_t)i;
        call_function(island, false, value, i % 3 == 0 ? FLAGS : i % 3 == 1 ? 0x801 : 0);
        call_function(stub, true, value, 0);
        hit(HOOKED, parameter_of(control, value), ~value);
    }
    const struct attune_aggregate *sums = m.slots[0].aggregates;
    EXPECT(memcmp(&sums[PATCHED], &sums[HOOKED], sizeof(sums[0])) == 0);
    EXPECT(memcmp(&sums[STUB], &sums[HOOKED], sizeof(sums[0])) == 0);
    EXPECT_EQUAL(m.slots[0].lost, 0);
    expect_same_records(&m, 0);
    bool counts = (control->word & ATTUNE_CTL_AGGREGATE) != 0 && control->min_value == 0;
    EXPECT(!counts || sums[PATCHED].count == 2 * sizeof(values) / sizeof(values[0]));
    free(memory);
}

static void check_settings(const uint8_t *island) {
    static const struct attune_point_control settings[] = {
        {.max_value = UINT64_MAX},
        {.word = ATTUNE_CTL_AGGREGATE, .max_value = UINT64_MAX},
        {.word = ATTUNE_CTL_AGGREGATE, .max_value = UINT64_MAX, .sample_mask = 3},
        {.word = ATTUNE_CTL_AGGREGATE, .max_value = UINT64_MAX, .parameter = 1},
        {.word = ATTUNE_CTL_AGGREGATE, .max_value = UINT64_MAX, .parameter = 5},
        {.word = ATTUNE_CTL_AGGREGATE, .min_value = 2, .max_value = 100},
        {.word = ATTUNE_CTL_AGGREGATE, .min_value = 1ull << 63, .max_value = UINT64_MAX},
        {.word = ATTUNE_CTL_EVENT, .max_value = UINT64_MAX},
        {.word = ATTUNE_CTL_EVENT, .max_value = UINT64_MAX, .sample_mask = 3},
        {.word = ATTUNE_CTL_EVENT, .max_value = UINT64_MAX, .parameter = 2},
        {.word = ATTUNE_CTL_EVENT, .min_value = 2, .max_value = 100},
        {.word = ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE, .max_value = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        check_same(&settings[i], island);
}

/* The value at an exit is what the function returns. */
static void check_exit(void) {
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    uint8_t *island = make_island(PATCHED, DM_PATCH_EXIT);
    m.controls[PATCHED].word = ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_EVENT;
    for (uint64_t i = 0; i < 5; i++)
        call_function(island, false, i, FLAGS);
    EXPECT_EQUAL(m.slots[0].aggregates[PATCHED].sum, 5 * make_registers(0, 0).rax);
    EXPECT_EQUAL(m.slots[0].head, 5);
    munmap(island, 4096);
    free(memory);
}

/* A ring that is full, and one that the reader has emptied in part. */
static void check_full_ring(const uint8_t *island) {
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    m.controls[PATCHED].word = ATTUNE_CTL_EVENT;
    for (uint64_t i = 0; i < 11; i++)
        call_function(island, false, i, FLAGS);
    EXPECT_EQUAL(m.slots[0].head, 8);
    EXPECT_EQUAL(m.slots[0].lost, 3);
    m.slots[0].tail = 3;
    for (uint64_t i = 11; i < 15; i++)
        call_function(island, false, i, FLAGS);
    EXPECT_EQUAL(m.slots[0].head, 11);
    EXPECT_EQUAL(m.slots[0].lost, 4);
    for (uint64_t i = 0; i < 8; i++)
        EXPECT_EQUAL(m.rings[i].value, i < 3 ? 11 + i : i);
    free(memory);
}

/* A signal handler that comes before any instruction of a hit loses hits of its own where
 * the thread is in a measurement, which are counted, and a reader that comes there sees
 * whole records only. */
static struct {
    const uint8_t *counting, *recording;
    struct dm_mapping *mapping;
    uint64_t hits, steps, read;
} stepped;

static void hit_both(void) {
    uint64_t value = stepped.hits++;
    ((void (*)(uint64_t, uint64_t))(uintptr_t)stepped.counting)(value, value + 1);
    ((void (*)(uint64_t, uint64_t))(uintptr_t)stepped.recording)(value, value + 1);
}

static void read_ring(void) {
    struct attune_slot *slot = &stepped.mapping->slots[0];
    for (; stepped.read < slot->head; stepped.read++) {
        struct attune_record *r =
            &stepped.mapping->rings[stepped.read & (stepped.mapping->ring_records - 1)];
        EXPECT(r->point == RECORDED && r->extra != r->value && r->time != 0);
        memset(r, 0, sizeof(*r));
    }
    slot->tail = stepped.read;
}

static void step(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    if ((const char *)registers[REG_RIP] == call_returned)
        registers[REG_EFL] &= ~TRAP;
    stepped.steps++;
    hit_both();
    read_ring();
}

static void check_each_step(const uint8_t *counting, const uint8_t *recording) {
    const struct sigaction steps = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    struct attune_slot *slot = &m.slots[0];
    m.controls[PATCHED].word = ATTUNE_CTL_AGGREGATE;
    m.controls[RECORDED].word = ATTUNE_CTL_EVENT;
    stepped.counting = counting;
    stepped.recording = recording;
    stepped.mapping = &m;
    hit_both();
    hit_both(); /* there is a slot, and room in its ring */
    EXPECT(sigaction(SIGTRAP, &steps, NULL) == 0);
    for (uint64_t i = 1; i <= 20; i++) {
        struct registers r = make_registers(i, TRAP);
        call_with(&r, i % 2 == 0 ? counting : recording);
        EXPECT(stepped.steps > 30 * i);
        read_ring();
    }
    signal(SIGTRAP, SIG_DFL);
    EXPECT_EQUAL(slot->aggregates[PATCHED].count + slot->head + slot->lost, 2 * stepped.hits + 20);
    EXPECT(slot->lost > 2 * 20 && slot->lost < 2 * stepped.steps);
    free(memory);
}

#ifndef __SANITIZE_THREAD__
/* A handler leaves a hit by longjmp before any of its instructions, also one that finds the
 * thread as an earlier jump left it. Whole records only are delivered afterwards, and the
 * thread measures again. */
static sigjmp_buf away;
static uint64_t jump_at;

static void jump_at_step(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    if ((const char *)registers[REG_RIP] == call_returned)
        registers[REG_EFL] &= ~TRAP;
    else if (stepped.steps++ == jump_at)
        siglongjmp(away, 1);
}

static void hit_recording(void) {
    uint64_t value = stepped.hits++;
    ((void (*)(uint64_t, uint64_t))(uintptr_t)stepped.recording)(value, value + 1);
    read_ring();
}

/* False: the hit has ended before that instruction. */
static bool leave_at(uint64_t step) {
    stepped.steps = 0;
    jump_at = step;
    if (sigsetjmp(away, 1) != 0)
        return true;
    struct registers r = make_registers(7, TRAP);
    call_with(&r, stepped.recording);
    return false;
}

static void check_left_at_each_step(const uint8_t *recording, bool left_before) {
    const struct sigaction jumps = {.sa_sigaction = jump_at_step, .sa_flags = SA_SIGINFO};
    bool left = true;
    stepped.recording = recording;
    for (uint64_t at = 0; left; at++) {
        struct attune_header *memory = make_memory(1, 1, 8);
        struct dm_mapping m = use_memory(memory);
        m.controls[RECORDED].word = ATTUNE_CTL_EVENT;
        stepped.mapping = &m;
        stepped.read = 0;
        hit_recording();
        if (left_before) { /* between next and head; the next hit takes it for dead */
            dm_thread.generation = DM_BUSY;
            dm_thread.next++;
            dm_thread.nested_head = m.slots[0].head;
            dm_thread.nested_hits = 1024;
        }
        EXPECT(sigaction(SIGTRAP, &jumps, NULL) == 0);
        left = leave_at(at);
        signal(SIGTRAP, SIG_DFL);
        for (int i = 0; i < 1100; i++)
            hit_recording();
        EXPECT(m.slots[0].head > 60);
        EXPECT(!left || at < 20000);
        free(memory);
    }
}

#endif

void test_hits(void) {
    uint8_t *island = make_island(PATCHED, DM_PATCH_ENTRY);
    uint8_t *recorder = make_island(RECORDED, DM_PATCH_ENTRY);
    EXPECT_EQUAL(dm_stub_bind(STUB - ATTUNE_HOOK_COUNT, (uintptr_t)returns_at_once), 0);
    check_settings(island);
    check_exit();
    check_full_ring(island);
    check_each_step(island, recorder);
#ifndef __SANITIZE_THREAD__ /* which has handlers come late, and does not let them jump */
    check_left_at_each_step(recorder, false);
    check_left_at_each_step(recorder, true);
#endif
    munmap(island, 4096);
    munmap(recorder, 4096);
}
