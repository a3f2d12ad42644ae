/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DMLib costs per operation; modes take turns, so that the machine's
 * moods hit all alike:
 *
 *   none           without it
 *   idle           preloaded and registered, nobody asks
 *   aggregate      count, sum, least, greatest, histogram per call
 *   sampled_64     a record of one call in 64
 *   tracing        a record per call
 *   duration       the same with the time spent in the call
 *   unread         tracing into a full ring, as when the controller died
 *
 * Records are read meanwhile.
 *
 *     run LIBRARY WORKLOAD ROUNDS
 *
 * prints a line of JSON for each operation and mode (bench/cmd/dmlib).
 */
#include "../tests/controller.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define MAX_ROUNDS 101

/* 32 MiB. What the reader has in its caches when the writer comes round again
 * costs the writer 30 ns per line at times: an effect of the machine and of a
 * ring that is full every millisecond, not of the library. */
#define RING_RECORDS (1u << 20)

enum { LOCK = 16, UNLOCK = 19, MALLOC = 0, FREE = 1, READ = 32 };

struct mode {
    const char *name;
    bool preloaded;
    uint32_t word;
    uint32_t sample_mask;
    bool unread;
};

static const struct mode modes[] = {
    {.name = "none"},
    {.name = "idle", .preloaded = true},
    {"aggregate", true, ATTUNE_CTL_AGGREGATE, 0, false},
    {"sampled_64", true, ATTUNE_CTL_EVENT, 63, false},
    {"tracing", true, ATTUNE_CTL_EVENT, 0, false},
    {"duration", true, ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION, 0, false},
    {"unread", true, ATTUNE_CTL_EVENT, 0, true},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

struct operation {
    const char *name;
    const char *unit;
    unsigned points[2];
    unsigned point_count;
};

static const struct operation operations[] = {
    {"lock", "lock+unlock", {LOCK, UNLOCK}, 2},
    {"malloc", "malloc+free", {MALLOC, FREE}, 2},
    {"read", "read", {READ}, 1},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

struct run {
    const struct operation *operation;
    const struct mode *mode;
};

struct result {
    double nanoseconds;
    double lost; /* share of the records */
};

/* Before main: the process waits in the gate. */
static void place(struct controller *c, struct process *p) {
    const struct run *run = c->data;
    for (unsigned i = 0; i < run->operation->point_count; i++) {
        control_of(p, run->operation->points[i])->sample_mask = run->mode->sample_mask;
        control_set(p, run->operation->points[i], run->mode->word);
    }
}

static volatile uint64_t sink;

/* Touches every record once, as decoding would. */
static uint64_t consume(struct process *p) {
    uint64_t taken = 0, sum = 0;
    uint64_t mask = p->header->ring_records - 1;
    const struct attune_record *rings = (void *)((char *)p->header + p->header->ring_offset);
    for (unsigned i = 0; i < p->header->slot_count; i++) {
        struct attune_slot *slot = slot_of(p, i);
        uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_ACQUIRE), tail = slot->tail;
        const struct attune_record *ring = &rings[(uint64_t)(slot->ring - 1) * (mask + 1)];
        for (; tail != head; tail++, taken++)
            sum += ring[tail & mask].time;
        __atomic_store_n(&slot->tail, tail, __ATOMIC_RELEASE);
    }
    sink += sum;
    return taken;
}

static uint64_t consume_until_exit(struct process *p, const struct mode *mode, pid_t pid,
                                   int *status) {
    uint64_t taken = 0;
    while (waitpid(pid, status, WNOHANG) == 0) {
        taken += mode->unread ? 0 : consume(p);
        poll(NULL, 0, 1);
    }
    return taken + consume(p);
}

/* The workload gets the last processor for itself, if there are several; we
 * take the others. Returns its number as text, or NULL. */
static char *divide_processors(void) {
    static char text[16];
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        return NULL;
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &allowed))
        last--;
    snprintf(text, sizeof(text), "%d", last);
    CPU_CLR(last, &allowed);
    return sched_setaffinity(0, sizeof(allowed), &allowed) == 0 ? text : NULL;
}

/* A hook that nothing comes through costs nothing: each call was counted, recorded or lost,
 * but for one in a hundred, since one of so many is drawn, and programs begin and end. */
static void check_calls(struct process *p, const struct run *run, uint64_t taken, uint64_t count) {
    uint64_t came = taken + lost(p), made = 0;
    for (unsigned i = 0; i < run->operation->point_count; i++)
        came += aggregate_of(p, run->operation->points[i]).count;
    if (run->mode->word != 0)
        made = count * run->operation->point_count / (run->mode->sample_mask + 1);
    if (came < made - made / 100 || came > made + made / 100)
        fail("%s %s: %lu calls came of %lu", run->mode->name, run->operation->name, came, made);
}

static char *workload_processor;

static struct result measure(const char *library, const char *workload, const struct run *run) {
    struct controller c = {.slots = 4,
                           .rings = 2,
                           .records = RING_RECORDS,
                           .place = place,
                           .data = (void *)run,
                           .unhooked = run->mode->word == 0};
    struct result result = {0};
    char *argv[] = {(char *)workload, (char *)run->operation->name, workload_processor, NULL};
    char text[64];
    int output, status = 0;
    struct process *p = NULL;
    uint64_t taken = 0, count = 0;
    controller_start(&c);
    pid_t pid = spawn(run->mode->preloaded ? library : NULL, &c, argv, NULL, &output);
    if (run->mode->preloaded) {
        p = controller_process(&c, 0);
        taken = consume_until_exit(p, run->mode, pid, &status);
        uint64_t gone = lost(p), all = taken + gone;
        result.lost = all != 0 ? (double)gone / (double)all : 0;
    } else {
        status = finish(pid);
    }
    read_all(output, text, sizeof(text));
    if (status != 0 || sscanf(text, "%lf %lu", &result.nanoseconds, &count) != 2 ||
        result.nanoseconds <= 0)
        fail("%s %s: status %#x, output %s", run->mode->name, run->operation->name, status, text);
    if (p != NULL)
        check_calls(p, run, taken, count);
    controller_stop(&c);
    return result;
}

static int compare(const void *a, const void *b) {
    const struct result *x = a, *y = b;
    return (x->nanoseconds > y->nanoseconds) - (x->nanoseconds < y->nanoseconds);
}

static void report(const struct operation *operation, struct result results[MODES][MAX_ROUNDS],
                   int rounds) {
    double base = 0;
    for (unsigned m = 0; m < MODES; m++) {
        struct result *r = results[m];
        qsort(r, (size_t)rounds, sizeof(*r), compare);
        double median = r[rounds / 2].nanoseconds;
        if (m == 0)
            base = median;
        printf("{\"operation\":\"%s\",\"mode\":\"%s\",\"ns\":%.3f,\"ratio\":%.4f,"
               "\"lost_share\":%.4f}\n",
               operation->unit, modes[m].name, median, median / base, r[rounds / 2].lost);
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    static struct result results[MODES][MAX_ROUNDS];
    int rounds = argc == 4 ? atoi(argv[3]) : 0;
    if (rounds < 1 || rounds > MAX_ROUNDS)
        fail("usage: run LIBRARY WORKLOAD ROUNDS, at most %d", MAX_ROUNDS);
    workload_processor = divide_processors();
    for (unsigned o = 0; o < OPERATIONS; o++) {
        for (int round = 0; round < rounds; round++)
            for (unsigned m = 0; m < MODES; m++)
                results[m][round] =
                    measure(argv[1], argv[2], &(struct run){&operations[o], &modes[m]});
        report(&operations[o], results, rounds);
    }
    return 0;
}
