/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/run.c measures: one operation in a loop, in a program with two
 * threads. Prints nanoseconds per operation, and how many there were. Knows nothing of
 * DMLib. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int zero;
static void *volatile block; /* the compiler must not see through it */

static void lock_pair(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void malloc_pair(void) {
    block = malloc(64);
    free(block);
}

static void read_byte(void) {
    char byte;
    if (read(zero, &byte, 1) != 1)
        exit(1);
}

static void *wait_forever(void *unused) {
    pause();
    return unused;
}

/* Processor time: on a busy machine the clock on the wall also counts others. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A copy of the loop per operation, so that its call is direct. */
#define RUN(operation)                                                                             \
    static void run_##operation(long count) {                                                      \
        for (long i = 0; i < count; i++)                                                           \
            operation();                                                                           \
    }
RUN(lock_pair)
RUN(malloc_pair)
RUN(read_byte)

static const struct {
    const char *name;
    void (*run)(long);
    long count;
} operations[] = {
    {"lock", run_lock_pair, 4000000},
    {"malloc", run_malloc_pair, 4000000},
    {"read", run_read_byte, 400000},
};

#define PARTS 41

static int compare(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Median over parts of the run: one that an interrupt or a cold cache after
 * another program's turn made long does not count. */
static double median_time(void (*run)(long), long count) {
    double times[PARTS];
    run(count / 10); /* caches, branches, ring pages */
    for (int i = 0; i < PARTS; i++) {
        double start = now();
        run(count / PARTS);
        times[i] = (now() - start) / (double)(count / PARTS);
    }
    qsort(times, PARTS, sizeof(times[0]), compare);
    return times[PARTS / 2];
}

static void pin(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0)
        exit(1);
}

int main(int argc, char **argv) {
    pthread_t other;
    if (argc == 3)
        pin(atoi(argv[2]));
    zero = open("/dev/zero", O_RDONLY);
    if (zero < 0 || pthread_create(&other, NULL, wait_forever, NULL) != 0)
        return 1;
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (argc < 2 || strcmp(argv[1], operations[i].name) != 0)
            continue;
        long count = operations[i].count;
        double nanoseconds = median_time(operations[i].run, count);
        printf("%.3f %ld\n", nanoseconds, count / 10 + PARTS * (count / PARTS));
        return 0;
    }
    fprintf(stderr, "usage: workload lock|malloc|read [CPU]\n");
    return 2;
}
