/* SPDX-License-Identifier: Apache-2.0 */
/* event_source RATE SECONDS THREADS: after a second in which others can
 * prepare, calls labs(n), n = 1, 2, ... in each thread, RATE times a second in
 * all, in slices of 100 us, and prints how many calls there were and their
 * sum. A thread that was kept from running makes up for at most 10 ms. Each
 * slice takes a lock, as programs do now and then. With KERNEL it calls a
 * function of its own, at the best price that a uprobe has on all kernels: its
 * first instruction is a push. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SLICE 100000  /* ns */
#define LATE 10000000 /* ns */
#define SECOND 1000000000
#define THREADS 64

struct source {
    pthread_t thread;
    double per_nano;
    int64_t nanos;
    uint64_t calls, sum;
};

#ifdef KERNEL
__asm__(".text\n.globl kernel_function\n.type kernel_function, @function\n.p2align 4\n"
        "kernel_function: push %rbp\n mov %rdi, %rax\n pop %rbp\n ret\n"
        ".size kernel_function, . - kernel_function\n");
long kernel_function(long);
#define EVENT kernel_function
#else
#define EVENT labs
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t slices;

static int64_t now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static void *run(void *argument) {
    struct source *s = argument;
    int64_t begin = now() + SECOND, end = begin + s->nanos, at = now();
    double due = 0;

    while (at < end) {
        int64_t next = now(), passed = next - at;
        if (passed < SLICE) {
            struct timespec rest = {.tv_nsec = SLICE - passed};
            nanosleep(&rest, NULL);
            continue;
        }
        at = next;
        pthread_mutex_lock(&lock);
        slices++;
        pthread_mutex_unlock(&lock);
        if (at < begin)
            continue;
        due += (double)(passed < LATE ? passed : LATE) * s->per_nano;
        for (; due >= 1; due -= 1)
            s->sum += (uint64_t)EVENT((long)++s->calls);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static struct source sources[THREADS];
    double rate = argc > 1 ? atof(argv[1]) : 1e6, seconds = argc > 2 ? atof(argv[2]) : 1;
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    uint64_t calls = 0, sum = 0;

    if (threads < 1 || threads > THREADS)
        return 2;
    for (int i = 0; i < threads; i++) {
        sources[i].per_nano = rate / threads / 1e9;
        sources[i].nanos = (int64_t)(seconds * 1e9);
        if (pthread_create(&sources[i].thread, NULL, run, &sources[i]) != 0)
            return 1;
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(sources[i].thread, NULL);
        calls += sources[i].calls;
        sum += sources[i].sum;
    }
    printf("calls %llu sum %llu\n", (unsigned long long)calls, (unsigned long long)sum);
    return 0;
}
