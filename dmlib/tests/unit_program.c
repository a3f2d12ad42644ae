/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what they capture, drop, sum up and write. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "unit.h"

#define POINT 40u

static uint64_t at(const void *place) { return (uint64_t)(uintptr_t)place; }

/* A hit with the parameters and results that a stub or hook could have. */
static uint64_t reals[8];
static struct dm_call call;

static void take(void) {
    uint32_t word = dm_word(POINT);
    struct dm_hit one = {.point = POINT, .word = word, .value = 1000, .extra = 7, .call = &call};
    dm_measure(&one, dm_thread_acquire);
}

static struct attune_program *begin(struct dm_mapping *m, uint32_t records, uint32_t word) {
    *m = use_memory(make_memory(1, 1, records));
    m->controls[POINT].program = 1;
    m->controls[POINT].word = word | ATTUNE_CTL_PROGRAM;
    memset(&call, 0, sizeof(call));
    call.reals = reals;
    call.has_integers = true;
    return &m->programs[1].program;
}

static const struct attune_continuation *follows(const struct dm_mapping *m, uint64_t index) {
    const void *unit = &m->rings[index & (m->ring_records - 1)];
    return unit;
}

static uint64_t word_of(const struct dm_mapping *m, uint64_t head, unsigned number) {
    const struct attune_continuation *unit = follows(m, head + 1 + number / 3);
    EXPECT_EQUAL(unit->point, ATTUNE_CONTINUATION_POINT);
    EXPECT_EQUAL(unit->flags, ATTUNE_RECORD_CONTINUATION);
    return number % 3 == 0 ? unit->first : number % 3 == 1 ? unit->second : unit->third;
}

#define CAPTURE(from, as, ...)                                                                     \
    ((struct attune_capture){.source = (from), .type = (as), __VA_ARGS__})

/* ---- sources, types and steps ---------------------------------------------- */

struct inner {
    int8_t small;
    float ratio;
    char name[12];
};

static struct outer {
    uint64_t first;
    struct inner *inner;
} outer;

/* What one capture gives; its kind is in *kind. */
static uint64_t captured(struct attune_capture capture, uint32_t *kind) {
    struct dm_mapping m;
    struct attune_program *program = begin(&m, 64, ATTUNE_CTL_EVENT);
    call.integers[0] = at(&outer);
    call.integers[1] = (uint64_t)-2;
    call.integers[5] = 0xffffffff80000001;
    call.call_site = 0x1234;
    double real = -1.5;
    float narrow = 0.25f;
    memcpy(&reals[0], &real, sizeof(real));
    memcpy(&reals[7], &narrow, sizeof(narrow));
    call.has_returned = true;
    call.returned = 0x1ff;
    program->captures = 1;
    program->capture[0] = capture;
    take();
    EXPECT_EQUAL(m.slots[0].head, 2);
    *kind = follows(&m, 1)->kinds;
    uint64_t value = word_of(&m, 0, 0);
    EXPECT_EQUAL(m.rings[0].flags >> ATTUNE_RECORD_FOLLOW_SHIFT, 1);
    EXPECT_EQUAL(m.rings[0].value, 1000);
    EXPECT_EQUAL(m.rings[0].extra, 7);
    free(m.header);
    return value;
}

static uint64_t bits_of(double real) {
    uint64_t bits;
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

static void check_sources(void) {
    static struct inner inner = {.small = -3, .ratio = 0.125f, .name = "abc"};
    outer.inner = &inner;
    const struct {
        struct attune_capture capture;
        uint64_t want;
        uint32_t kind;
    } rows[] = {
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_I64, .index = 1), (uint64_t)-2,
         ATTUNE_KIND_SIGNED},
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_U8, .index = 1), 0xfe, ATTUNE_KIND_UNSIGNED},
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_I32, .index = 5), 0xffffffff80000001,
         ATTUNE_KIND_SIGNED},
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_U32, .index = 5), 0x80000001,
         ATTUNE_KIND_UNSIGNED},
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_U32, .index = 200), 0x80000001,
         ATTUNE_KIND_UNSIGNED},
        {CAPTURE(ATTUNE_FROM_FLOAT_PARAMETER, ATTUNE_TYPE_F64, .index = 0), bits_of(-1.5),
         ATTUNE_KIND_FLOAT},
        {CAPTURE(ATTUNE_FROM_FLOAT_PARAMETER, ATTUNE_TYPE_F32, .index = 7), bits_of(0.25),
         ATTUNE_KIND_FLOAT},
        {CAPTURE(ATTUNE_FROM_RETURNED, ATTUNE_TYPE_I8, ), (uint64_t)-1, ATTUNE_KIND_SIGNED},
        {CAPTURE(ATTUNE_FROM_FLOAT_RETURNED, ATTUNE_TYPE_F64, ), 0, ATTUNE_KIND_UNREADABLE},
        {CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_F32, .value = bits_of(3)), bits_of(3),
         ATTUNE_KIND_FLOAT},
        {CAPTURE(ATTUNE_FROM_CALL_SITE, ATTUNE_TYPE_POINTER, ), 0x1234, ATTUNE_KIND_POINTER},
        {CAPTURE(ATTUNE_FROM_THREAD, ATTUNE_TYPE_I32, ), (uint64_t)dm_syscall(SYS_gettid, 0),
         ATTUNE_KIND_SIGNED},
        {CAPTURE(99, ATTUNE_TYPE_U64, ), 0, ATTUNE_KIND_UNREADABLE},
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_I8, .steps = 2,
                 .offset = {offsetof(struct outer, inner), offsetof(struct inner, small)}),
         (uint64_t)-3, ATTUNE_KIND_SIGNED},
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_F32, .steps = 2,
                 .offset = {offsetof(struct outer, inner), offsetof(struct inner, ratio)}),
         bits_of(0.125), ATTUNE_KIND_FLOAT},
        {CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_POINTER, .steps = 1,
                 .value = at(&outer.inner) + 8, .offset = {-8}),
         at(&inner), ATTUNE_KIND_POINTER},
        {CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_I8, .index = ATTUNE_STAYS_MAPPED, .steps = 1,
                 .value = at(&inner)),
         (uint64_t)-3, ATTUNE_KIND_SIGNED},
        {CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_U64, .steps = 1, .value = 8), 0,
         ATTUNE_KIND_UNREADABLE},
        {CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_U64, .steps = 1, .value = UINT64_MAX - 3), 0,
         ATTUNE_KIND_UNREADABLE},
        {CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_U64, .steps = 2, .value = at(&outer.first)), 0,
         ATTUNE_KIND_UNREADABLE},
        {CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_STRING, .limit = 8, .steps = 2,
                 .offset = {offsetof(struct outer, inner), offsetof(struct inner, name)}),
         3, ATTUNE_KIND_STRING},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t kind;
        uint64_t value = captured(rows[i].capture, &kind);
        if (value != rows[i].want || kind != rows[i].kind) {
            fprintf(stderr, "FAIL: capture %zu: %#lx kind %u, want %#lx kind %u\n", i, value, kind,
                    rows[i].want, rows[i].kind);
            exit(1);
        }
    }
}

/* ---- strings ------------------------------------------------------------------- */

/* The program is as hostile as it can be: the bounds are ours. */
static void check_strings(void) {
    struct dm_mapping m;
    struct attune_program *program = begin(&m, 64, ATTUNE_CTL_EVENT);
    char *pages =
        mmap(NULL, 2 * DM_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(pages != MAP_FAILED && munmap(pages + DM_PAGE_SIZE, DM_PAGE_SIZE) == 0);
    memset(pages, 'x', DM_PAGE_SIZE);
    char *last = pages + DM_PAGE_SIZE - 5; /* where it ends cannot be read */
    program->captures = 255;
    for (unsigned i = 0; i < ATTUNE_CAPTURES; i++)
        program->capture[i] = CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_STRING, .limit = 4096,
                                      .steps = 1, .value = at(i == 0 ? last : pages));
    take();
    EXPECT_EQUAL(word_of(&m, 0, 0), 0);
    EXPECT(word_of(&m, 0, 1) == (256 | ATTUNE_STRING_CUT));
    EXPECT(word_of(&m, 0, 2) == 0x7878787878787878);
    EXPECT_EQUAL(follows(&m, 1)->kinds & 0xff, ATTUNE_KIND_STRING << 4 | ATTUNE_KIND_UNREADABLE);
    EXPECT_EQUAL(follows(&m, 2)->kinds, 0);
    unsigned units = m.rings[0].flags >> ATTUNE_RECORD_FOLLOW_SHIFT;
    EXPECT(units <= ATTUNE_CONTINUATIONS_MAX);
    EXPECT_EQUAL(m.slots[0].head, 1 + units);
    munmap(pages, DM_PAGE_SIZE);
    free(m.header);
}

/* ---- rings --------------------------------------------------------------------- */

static void check_ring(void) {
    struct dm_mapping m;
    struct attune_program *program = begin(&m, 8, ATTUNE_CTL_EVENT);
    struct attune_slot *slot = &m.slots[0];
    program->captures = 4;
    for (unsigned i = 0; i < 4; i++)
        program->capture[i] = CAPTURE(ATTUNE_FROM_CONSTANT, ATTUNE_TYPE_U64, .value = 100 + i);
    program->value = 4;
    take();
    take();
    take(); /* three units each: the third is lost whole */
    EXPECT_EQUAL(slot->head, 6);
    EXPECT_EQUAL(slot->lost, 1);
    slot->tail = 6;
    take(); /* round the end of the ring */
    EXPECT_EQUAL(slot->head, 9);
    EXPECT_EQUAL(m.rings[6].value, 103);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQUAL(word_of(&m, 6, i), 100 + i);
    EXPECT_EQUAL(word_of(&m, 6, 5), 0);

    slot->tail = 9; /* records with and without take turns in one ring */
    m.controls[41].word = ATTUNE_CTL_EVENT;
    hit(41, 5, 6);
    hit(41, 7, 8);
    take();
    hit(41, 9, 10);
    EXPECT_EQUAL(slot->head, 15);
    EXPECT_EQUAL(m.rings[9 & 7].value, 5);
    EXPECT_EQUAL(m.rings[10 & 7].value, 7);
    EXPECT_EQUAL(word_of(&m, 11, 3), 103);
    EXPECT_EQUAL(m.rings[14 & 7].value, 9);
    EXPECT_EQUAL(m.rings[14 & 7].flags, 0);
    free(m.header);
}

/* ---- predicates and aggregates ------------------------------------------------ */

static void check_aggregate(void) {
    struct dm_mapping m;
    struct attune_program *program = begin(&m, 8, ATTUNE_CTL_AGGREGATE);
    struct attune_aggregate *sums = &m.slots[0].aggregates[POINT];
    program->captures = 2;
    program->capture[0] = CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_I32, .index = 0);
    program->capture[1] = CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_U8, .index = 1, .steps = 1);
    program->value = 1;
    program->predicates = 1;
    program->predicate[0] = (struct attune_predicate){
        .capture = 0, .comparison = ATTUNE_IS_LESS, .mask = UINT64_MAX, .operand = (uint64_t)5};
    const int32_t values[] = {-7, 3, 5, 9, -1, 0};
    for (unsigned i = 0; i < 6; i++) {
        call.integers[0] = (uint32_t)values[i]; /* the upper half is not the callee's */
        take();
    }
    EXPECT_EQUAL(sums->count, 4);
    EXPECT_EQUAL((int64_t)sums->sum, -5);
    EXPECT_EQUAL((int64_t)(~sums->least[1] ^ ATTUNE_SIGN), -7);
    EXPECT_EQUAL((int64_t)(sums->greatest[1] ^ ATTUNE_SIGN), 3);
    EXPECT_EQUAL(sums->histogram[0], 3);
    EXPECT_EQUAL(sums->histogram[2], 1);

    program->value = 2; /* it cannot be read: such hits are counted apart */
    take();
    EXPECT_EQUAL(sums->count, 4);
    EXPECT_EQUAL(m.programs[1].unreadable, 1);
    program->predicate[0].capture = 1; /* nothing holds for what is not there */
    take();
    EXPECT_EQUAL(m.programs[1].unreadable, 1);
    m.controls[POINT].program = 2; /* there is none */
    take();
    EXPECT_EQUAL(sums->count, 4);
    free(m.header);
}

/* Whether a call is one in four is decided before its conditions, which would have to
 * read memory for each: calls 0, 2, 5, 10, 13, 18, 23 ... are due. */
static void check_due_before_conditions(void) {
    struct dm_mapping m;
    struct attune_program *program = begin(&m, 64, ATTUNE_CTL_EVENT);
    m.controls[POINT].sample_mask = 3;
    program->captures = 1;
    program->capture[0] = CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_U64, .index = 0);
    program->predicates = 1;
    program->predicate[0] = (struct attune_predicate){
        .capture = 0, .comparison = ATTUNE_IS_GREATER_EQUAL, .mask = UINT64_MAX, .operand = 10};
    for (call.integers[0] = 0; call.integers[0] < 20; call.integers[0]++)
        take();
    EXPECT_EQUAL(m.slots[0].head, 6); /* each with a continuation */
    EXPECT_EQUAL(word_of(&m, 0, 0), 10);
    EXPECT_EQUAL(word_of(&m, 2, 0), 13);
    EXPECT_EQUAL(word_of(&m, 4, 0), 18);
    free(m.header);
}

void test_programs(void) {
    check_sources();
    check_strings();
    check_ring();
    check_aggregate();
    check_due_before_conditions();
}

/* ---- tables ----------------------------------------------------------------------- */

static uint64_t count_of(const struct attune_table *table, uint64_t key) {
    for (unsigned i = 1; i < ATTUNE_PLACES; i++)
        if (key != 0 && table->place[i].key == key)
            return table->place[i].count;
    return key == 0 ? table->place[0].count : 0;
}

static void check_keys(void) {
    struct dm_mapping m;
    struct attune_program *program = begin(&m, 8, ATTUNE_CTL_AGGREGATE);
    program->captures = 1;
    program->capture[0] = CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_U64, .index = 0);
    program->key = 1;
    program->table = 1;
    program->max_keys = 3;
    program->places = 8;
    const uint64_t keys[] = {7, 0, 7, UINT64_MAX, 9, 9, 0, 11};
    for (unsigned i = 0; i < 8; i++) {
        call.integers[0] = keys[i];
        take();
    }
    const struct attune_table *table = m.tables;
    EXPECT_EQUAL(table->keys, 3);
    EXPECT_EQUAL(count_of(table, 7), 2);
    EXPECT_EQUAL(count_of(table, 0), 2);
    EXPECT_EQUAL(count_of(table, UINT64_MAX), 1);
    EXPECT_EQUAL(table->rest.count, 3);
    EXPECT_EQUAL(table->rest.sum, 3000);
    EXPECT_EQUAL(~table->rest.least[1], 1000);
    EXPECT_EQUAL(table->rest.greatest[1], 1000);
    EXPECT_EQUAL(table->rest.greatest[0], 0);
    EXPECT_EQUAL(table->rest.histogram[10], 3);
    program->table = 2; /* there is none */
    take();
    program->table = 0;
    take();
    EXPECT_EQUAL(table->rest.count, 3);
    free(m.header);
}

#define THREADS 8
#define HITS 20000

static void *hit_keys(void *number) {
    struct dm_call mine = {.has_integers = true};
    struct dm_hit one = {.point = POINT, .word = dm_word(POINT), .call = &mine};
    for (uint64_t i = 0; i < HITS; i++) {
        mine.integers[0] = i % 100;
        one.value = (uint64_t)(uintptr_t)number;
        dm_measure(&one, dm_thread_acquire);
    }
    return number;
}

/* Everybody brings the same hundred keys; places for fifty. */
static void check_threads(void) {
    struct dm_mapping m = use_memory(make_memory(THREADS, 0, 8));
    struct attune_program *program = &m.programs[0].program;
    m.controls[POINT].word = ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_PROGRAM;
    *program =
        (struct attune_program){.captures = 1, .key = 1, .table = 1, .max_keys = 50, .places = 128};
    program->capture[0] = CAPTURE(ATTUNE_FROM_PARAMETER, ATTUNE_TYPE_U64, .index = 0);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, hit_keys, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    const struct attune_table *table = m.tables;
    uint64_t keys = 0, count = table->rest.count, sum = table->rest.sum;
    for (unsigned i = 0; i < ATTUNE_PLACES; i++) {
        const struct attune_aggregate *place = &table->place[i];
        keys += place->key != 0;
        count += place->count;
        sum += place->sum;
        for (unsigned j = 1; j < i; j++)
            EXPECT(place->key == 0 || place->key != table->place[j].key);
    }
    EXPECT_EQUAL(table->keys, keys);
    EXPECT(keys <= 50 && keys >= 50 - THREADS);
    EXPECT_EQUAL(count, THREADS * HITS);
    EXPECT_EQUAL(sum, HITS * THREADS * (THREADS - 1) / 2);
    free(m.header);
}

void test_tables(void) {
    check_keys();
    check_threads();
}
