/* SPDX-License-Identifier: Apache-2.0 */
/* Rings, aggregates and slots, with a reader that misbehaves. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "unit.h"

#define POINT 40u

static struct attune_slot *own_slot(const struct dm_mapping *m) {
    int32_t tid = (int32_t)dm_syscall(SYS_gettid, 0);
    for (uint32_t i = 0; i < m->slot_count; i++)
        if (m->slots[i].state == ATTUNE_SLOT_USED && m->slots[i].tid == tid)
            return &m->slots[i];
    return NULL;
}

static void expect_record(const struct dm_mapping *m, uint64_t index, uint64_t value,
                          unsigned flags) {
    const struct attune_record *r = &m->rings[index];
    EXPECT_EQUAL(r->value, value);
    EXPECT_EQUAL(r->extra, value + 1);
    EXPECT_EQUAL(r->point, POINT);
    EXPECT_EQUAL(r->flags, flags);
    EXPECT_EQUAL(r->thread, 0);
    EXPECT(r->time != 0);
}

static void check_ring(void) {
    struct attune_header *memory = make_memory(4, 1, 8);
    struct dm_mapping m = use_memory(memory);
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    for (uint64_t i = 0; i < 11; i++)
        hit(POINT, i, i + 1);
    struct attune_slot *slot = own_slot(&m);
    EXPECT(slot != NULL);
    EXPECT_EQUAL(slot->ring, 1);
    EXPECT_EQUAL(slot->head, 8);
    EXPECT_EQUAL(slot->lost, 3);
    for (uint64_t i = 0; i < 8; i++)
        expect_record(&m, i, i, 0);

    slot->tail = 5; /* the reader took five: they go where 0 to 4 were */
    for (uint64_t i = 100; i < 110; i++)
        hit(POINT, i, i + 1);
    EXPECT_EQUAL(slot->head, 13);
    EXPECT_EQUAL(slot->lost, 8);
    for (uint64_t i = 0; i < 5; i++)
        expect_record(&m, i, 100 + i, 0);
    expect_record(&m, 5, 5, 0);

    slot->tail = 1ull << 60; /* nonsense: nothing is written then */
    hit(POINT, 1, 2);
    EXPECT_EQUAL(slot->head, 13);
    slot->tail = 13;
    hit(POINT, 7, 8);
    expect_record(&m, 5, 7, 0);
    free(memory);
}

static void check_no_ring(void) {
    struct attune_header *memory = make_memory(4, 0, 8);
    struct dm_mapping m = use_memory(memory);
    m.controls[POINT].word = ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE;
    for (int i = 0; i < 5; i++)
        hit(POINT, 3, 4);
    EXPECT_EQUAL(own_slot(&m)->lost, 5);
    EXPECT_EQUAL(own_slot(&m)->aggregates[POINT].count, 5);
    EXPECT_EQUAL(memory->ring_next, 0);
    free(memory);
}

static void expect_within(uint64_t got, uint64_t wanted, uint64_t off) {
    EXPECT(got + off >= wanted && got <= wanted + off);
}

static void check_no_slot(void) {
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    m.slots[0].state = ATTUNE_SLOT_USED; /* somebody else's */
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    for (int i = 0; i < 500; i++)
        hit(POINT, 3, 4);
    EXPECT_EQUAL(memory->lost_no_slot, 500);
    m.slots[0].state = ATTUNE_SLOT_FREE;
    for (int i = 0; i < 2000; i++) /* it looks again now and then */
        hit(POINT, 3, 4);
    EXPECT_EQUAL(memory->lost_no_slot + m.slots[0].head + m.slots[0].lost, 2500);
    EXPECT(m.slots[0].head == 8);
    free(memory);
}

/* What is lost is what would have been taken: of four calls one, and none that does not
 * count. */
static void check_lost_when_busy(void) {
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    struct dm_hit timed = {.point = POINT, .word = ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION};
    uint64_t lost = 0;
    m.controls[POINT].sample_mask = 3;
    m.controls[POINT].min_value = 10;
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    hit(POINT, 1, 0);
    dm_thread.generation = DM_BUSY; /* as a handler finds the thread */
    for (uint64_t i = 0; i < 800; i++)
        hit(POINT, i % 2 * 10, 0);
    expect_within(m.slots[0].lost, 100, 1);
    lost = m.slots[0].lost;
    struct dm_safe_point here = {.point = POINT, .family = ATTUNE_AT_LOCK};
    dm_mailbox_run(&here);
    EXPECT_EQUAL(m.slots[0].lost, lost);
    for (int i = 0; i < 160; i++)
        dm_call_begins(&timed, 1000, NULL, dm_thread_acquire);
    expect_within(m.slots[0].lost, lost + 40, 1);
    free(memory);
}

static void check_lost_without_slot(void) {
    struct attune_header *memory = make_memory(0, 0, 8);
    struct dm_mapping m = use_memory(memory);
    struct dm_hit timed = {.point = POINT, .word = ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION};
    dm_thread.generation = DM_NO_GENERATION;
    m.controls[POINT].sample_mask = 3;
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    for (int i = 0; i < 400; i++)
        hit(POINT, 3, 4);
    expect_within(memory->lost_no_slot, 100, 1);
    m.controls[POINT].word |= ATTUNE_CTL_AGGREGATE;
    for (int i = 0; i < 400; i++)
        hit(POINT, 3, 4);
    expect_within(memory->lost_no_slot, 200, 2);
    EXPECT_EQUAL(m.slots[0].aggregates[POINT].count, 400);
    for (int i = 0; i < 400; i++)
        dm_call_begins(&timed, 1000, NULL, dm_thread_acquire);
    expect_within(memory->lost_no_slot, 300, 3);
    free(memory);
}

/* A thread without a slot adds up all the same, and so does one that is ending. */
static void check_common_slot(void) {
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    const struct attune_aggregate *common = &m.slots[1].aggregates[POINT];
    m.slots[0].state = ATTUNE_SLOT_USED; /* somebody else's */
    m.controls[POINT].word = ATTUNE_CTL_AGGREGATE;
    hit(POINT, 7, 0);
    hit(POINT, 3, 0);
    EXPECT_EQUAL(memory->lost_no_slot, 0);
    EXPECT_EQUAL(memory->common_used, 1);
    EXPECT_EQUAL(common->count, 2);
    EXPECT_EQUAL(common->sum, 10);
    EXPECT_EQUAL(~common->least[1], 3);
    EXPECT_EQUAL(common->greatest[1], 7);
    EXPECT_EQUAL(common->histogram[2] + common->histogram[3], 2);
    memory->epoch = 2;
    m.controls[POINT].word |= ATTUNE_CTL_EVENT;
    hit(POINT, 5, 0);
    EXPECT_EQUAL(~common->least[0], 5);
    EXPECT_EQUAL(common->greatest[0], 5);
    EXPECT_EQUAL(memory->lost_no_slot, 1); /* its record */
    EXPECT_EQUAL(m.slots[0].aggregates[POINT].count, 0);
    free(memory);
}

/* As in a thread whose signal handler measures just when the thread is about to look for
 * its slot. */
static bool interrupted_acquire(struct dm_thread *thread) {
    hit(POINT, 1, 2);
    return dm_thread_acquire(thread);
}

static void check_slot_of_handler(void) {
    struct attune_header *memory = make_memory(4, 1, 8);
    struct dm_mapping m = use_memory(memory);
    struct dm_hit first = {.point = POINT, .word = ATTUNE_CTL_EVENT, .value = 3, .extra = 4};
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    dm_measure(&first, interrupted_acquire);
    EXPECT_EQUAL(memory->slots_used, 1);
    EXPECT_EQUAL(m.slots[0].head, 2);
    EXPECT_EQUAL(m.slots[1].state, ATTUNE_SLOT_FREE);
    expect_record(&m, 0, 1, 0);
    expect_record(&m, 1, 3, 0);
    free(memory);
}

/* Threads without a slot share the header: their hits leave it as it is. */
static void check_header_is_read_only(void) {
    struct attune_header *made = make_memory(0, 0, 8);
    size_t size = (made->total_size + DM_PAGE_SIZE - 1) & ~(size_t)(DM_PAGE_SIZE - 1);
    struct attune_header *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED && made->slot_offset > DM_PAGE_SIZE);
    memcpy(memory, made, made->total_size);
    struct dm_mapping m = use_memory(memory);
    m.controls[POINT].word = ATTUNE_CTL_AGGREGATE;
    hit(POINT, 7, 0);
    EXPECT_EQUAL(memory->common_used, 1);
    EXPECT(mprotect(memory, DM_PAGE_SIZE, PROT_READ) == 0);
    hit(POINT, 7, 0);
    EXPECT_EQUAL(m.slots[0].aggregates[POINT].count, 2);
    munmap(memory, size);
    free(made);
}

static void check_sampling_and_predicate(void) {
    struct attune_header *memory = make_memory(1, 1, 64);
    struct dm_mapping m = use_memory(memory);
    m.controls[POINT].sample_mask = 3;
    m.controls[POINT].min_value = 10;
    m.controls[POINT].max_value = 19;
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    for (uint64_t i = 0; i < 40; i++)
        hit(POINT, i, i + 1);
    /* One call in four is due, whatever is admitted: 0, 2, 5, 10, 13, 18, 23, 26 ... */
    EXPECT_EQUAL(m.slots[0].head, 3);
    expect_record(&m, 0, 10, ATTUNE_RECORD_SAMPLED);
    expect_record(&m, 1, 13, ATTUNE_RECORD_SAMPLED);
    expect_record(&m, 2, 18, ATTUNE_RECORD_SAMPLED);
    free(memory);
}

/* What a program does at each second, fourth or eighth call is seen as often as the
 * rest: one in four of it. */
static void check_rhythm(void) {
    for (uint64_t beat = 2; beat <= 8; beat *= 2) {
        struct attune_header *memory = make_memory(1, 1, 1024);
        struct dm_mapping m = use_memory(memory);
        m.controls[POINT].sample_mask = 3;
        m.controls[POINT].min_value = m.controls[POINT].max_value = 1;
        m.controls[POINT].word = ATTUNE_CTL_EVENT;
        for (uint64_t i = 0; i < 4000; i++)
            hit(POINT, i % beat, 0);
        uint64_t seen = m.slots[0].head, wanted = 1000 / beat;
        EXPECT(seen + 3 > wanted && seen < wanted + 3);
        free(memory);
    }
}

static void check_longjmp_is_forgotten(void) {
    struct attune_header *memory = make_memory(1, 1, 64);
    struct dm_mapping m = use_memory(memory);
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    hit(POINT, 1, 2);
    dm_thread.generation = DM_BUSY; /* as a handler that jumped away leaves it */
    for (int i = 0; i < 1030; i++)
        hit(POINT, 3, 4);
    EXPECT_EQUAL(m.slots[0].lost, 1024);
    EXPECT_EQUAL(m.slots[0].head, 7);
    free(memory);
}

/* What a child finds that a signal handler forks anywhere in a measurement, with which it
 * goes on: the state of its process is gone. */
static void goes_on(void) {
    struct dm_thread *thread = &dm_thread;
    struct attune_record record = {.point = POINT, .time = 1};
    struct attune_program program = {.table = 1, .places = 2, .max_keys = 2};
    uint64_t words[3] = {1, 2, 3};
    thread->limit = thread->next;
    EXPECT(dm_live.generation == 0 && !dm_ring_room(thread));
    dm_write_followed(thread, &record, 0, words, 3);
    dm_aggregate(&thread->slot->aggregates[POINT], 1, false);
    dm_table_add(&program, 1, 1, false);
    dm_lose_no_slot();
    thread->ring = NULL;
    EXPECT(!dm_ring_room(thread));
    EXPECT(dm_thread_recover(thread) || thread->slot->head == 1);
}

static void check_forked(void) {
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    int status;
    m.controls[POINT].word = ATTUNE_CTL_EVENT;
    hit(POINT, 1, 2);
    EXPECT_EQUAL(own_slot(&m)->head, 1);
    pid_t child = fork();
    if (child == 0) {
        goes_on();
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    free(memory);
}

void test_records(void) {
    check_ring();
    check_forked();
    check_no_ring();
    check_no_slot();
    check_lost_when_busy();
    check_lost_without_slot();
    check_common_slot();
    check_slot_of_handler();
    check_header_is_read_only();
    check_sampling_and_predicate();
    check_rhythm();
    check_longjmp_is_forgotten();
}

/* ---- aggregates -------------------------------------------------------------- */

static const uint64_t values[] = {5, 0, 1, 1ull << 62, UINT64_MAX, 4, 7, 8};

/* What the range is about is the duration, where one is asked for. */
static void check_duration_within(struct attune_point_control *control,
                                  const struct attune_aggregate *a) {
    struct dm_hit timed = {
        .point = POINT, .word = ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION, .value = 3};
    uint64_t count = a->count;
    control->min_value = 100;
    for (timed.duration = 99; timed.duration < 102; timed.duration++)
        dm_measure(&timed, dm_thread_acquire);
    EXPECT_EQUAL(a->count, count + 2);
    control->min_value = 0;
}

static void check_duration(struct attune_aggregate *a) {
    struct dm_hit timed = {.point = POINT,
                           .word = ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION,
                           .value = 3,
                           .duration = 1000};
    uint64_t count = a->count, sum = a->sum;
    dm_measure(&timed, dm_thread_acquire);
    EXPECT_EQUAL(a->count, count + 1);
    EXPECT_EQUAL(a->sum, sum + 1000);
    EXPECT_EQUAL(a->histogram[10], 1);
}

void test_aggregates(void) {
    struct attune_header *memory = make_memory(1, 1, 8);
    struct dm_mapping m = use_memory(memory);
    struct attune_aggregate *a = &m.slots[0].aggregates[POINT];
    uint64_t sum = 0;
    m.controls[POINT].word = ATTUNE_CTL_AGGREGATE;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++, sum += values[i - 1])
        hit(POINT, values[i], 0);
    EXPECT_EQUAL(a->count, 8);
    EXPECT_EQUAL(a->sum, sum);
    EXPECT_EQUAL(~a->least[1], 0);
    EXPECT(a->greatest[1] == UINT64_MAX);
    EXPECT_EQUAL(a->histogram[0], 1);  /* 0 */
    EXPECT_EQUAL(a->histogram[1], 1);  /* 1 */
    EXPECT_EQUAL(a->histogram[3], 3);  /* 4, 5, 7 */
    EXPECT_EQUAL(a->histogram[4], 1);  /* 8 */
    EXPECT_EQUAL(a->histogram[63], 2); /* and everything above */

    memory->epoch = 2;
    EXPECT(a->least[0] == 0 && a->greatest[0] == 0);
    hit(POINT, 6, 0);
    EXPECT_EQUAL(~a->least[0], 6);
    EXPECT_EQUAL(a->greatest[0], 6);
    EXPECT_EQUAL(a->count, 9);
    check_duration(a);
    check_duration_within(&m.controls[POINT], a);
    EXPECT_EQUAL(m.slots[0].head, 0);
    free(memory);
}

/* ---- threads ------------------------------------------------------------------ */

#define THREADS 8
#define HITS 20000

static void *hit_often(void *unused) {
    for (uint64_t i = 0; i < HITS; i++)
        hit(POINT, i, i + 1);
    return unused;
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, hit_often, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Two rounds, so that slots and rings of the first serve the second. */
void test_threads(void) {
    struct attune_header *memory = make_memory(THREADS, THREADS, 64);
    struct dm_mapping m = use_memory(memory);
    uint64_t count = 0, produced = memory->lost_no_slot;
    m.controls[POINT].word = ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE;
    for (int round = 0; round < 2; round++) {
        run_threads();
        for (int i = 0; i < THREADS; i++) {
            EXPECT(m.slots[i].state != ATTUNE_SLOT_USED);
            m.slots[i].tail = m.slots[i].head;
            m.slots[i].state = ATTUNE_SLOT_FREE;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        produced += m.slots[i].head + m.slots[i].lost;
        count += m.slots[i].aggregates[POINT].count;
    }
    EXPECT_EQUAL(produced + memory->lost_no_slot, 2 * THREADS * HITS);
    count += m.slots[THREADS].aggregates[POINT].count;
    EXPECT_EQUAL(count, 2 * THREADS * HITS);
    EXPECT(memory->ring_next <= THREADS);
    memory->detached = 1;
    dm_go_inert();
    EXPECT_EQUAL(dm_word(POINT), 0);
    free(memory);
}
