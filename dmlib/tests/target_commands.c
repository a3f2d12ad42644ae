/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that commands are sent to: `target-commands WHAT`. It prints the
 * addresses that the test needs, works until it sees the change, and prints
 * what it saw.
 */
#include <immintrin.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t variable = 5;
static const uint64_t constant[] = {6, 0};

static void show(const void *address) { printf("%lu\n", (unsigned long)(uintptr_t)address); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Blocks of 1 MB come from mmap until mallopt says otherwise; glibc keeps that
 * in a bit before the block. */
static int is_mapped(void) {
    void *block = malloc(1 << 20);
    size_t *volatile header = (size_t *)block - 1;
    int mapped = (*header & 2) != 0;
    free(block);
    return mapped;
}

static int tune_malloc(void) {
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* and no longer by itself */
    show((void *)mallopt);
    fflush(stdout);
    for (double end = now() + 60; is_mapped();)
        if (now() > end)
            return 1;
    printf("not mapped\n");
    return 0;
}

static int watch_variable(void) {
    show((const void *)&variable);
    show(constant);
    fflush(stdout);
    for (double end = now() + 60; variable == 5;) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        if (now() > end)
            return 1;
    }
    printf("%lu\n", (unsigned long)variable);
    return 0;
}

static volatile int called, returned;

static void may_be_cancelled(void) {
    called = 1;
    pthread_testcancel();
    returned = 1;
}

static void *lock_until_called(void *go) {
    while (!*(volatile int *)go)
        ;
    for (double end = now() + 60; !called && now() < end;) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    pthread_testcancel();
    return NULL;
}

/* A thread that is cancelled already and has come to no place yet where it ends. */
static int cancel_called(void) {
    pthread_t one;
    void *result;
    volatile int go = 0;
    if (pthread_create(&one, NULL, lock_until_called, (void *)&go) != 0 || pthread_cancel(one) != 0)
        return 1;
    show((void *)may_be_cancelled);
    fflush(stdout);
    go = 1;
    if (pthread_join(one, &result) != 0 || result != PTHREAD_CANCELED)
        return 3;
    printf("%d\n", returned);
    return 0;
}

#ifdef __x86_64__
#define GOT_SLOT(function)                                                                         \
    ({                                                                                             \
        void *slot;                                                                                \
        __asm__("leaq " #function "@GOTPCREL(%%rip), %0" : "=r"(slot));                            \
        slot;                                                                                      \
    })

/* Through the slot itself each time. */
#define CALL(slot, function) (*(__typeof__(&function) volatile *)(slot))

static volatile sig_atomic_t stopped;

static void stop(int signal) { stopped = signal; }

static int mixes(void *slot, long n) {
    double got =
        CALL(slot, plugin_mix)(n, 2, 3, 4, 5, 6, 7, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5);
    double integers = (double)n + 2 * 2 + 3 * 3 + 4 * 4 + 5 * 5 + 6 * 6 + 7 * 7;
    double doubles =
        1.5 + 2 * 2.5 + 3 * 3.5 + 4 * 4.5 + 5 * 5.5 + 6 * 6.5 + 7 * 7.5 + 8 * 8.5 + 9 * 9.5;
    return got == integers + doubles;
}

/* The upper halves of vector registers are arguments, too. */
__attribute__((target("avx"))) static int wide(void *slot, long n) {
    __m256d a = _mm256_set_pd(1, 2, 3, (double)n);
    return CALL(slot, plugin_wide)(a, a) == 2 * (1 + 2 + 3 + (double)n);
}

static int call_through_stubs(void) {
    void *mix = GOT_SLOT(plugin_mix), *sum = GOT_SLOT(plugin_sum), *vectors = GOT_SLOT(plugin_wide);
    show(mix);
    show(*(void **)mix);
    show(sum);
    show(*(void **)sum);
    show(vectors);
    show(*(void **)vectors);
    fflush(stdout);
    signal(SIGTERM, stop);
    long calls = 0;
    char none;
    for (; !stopped; calls++) {
        if (read(-1, &none, 1) != -1)
            return 5;
        if (!mixes(mix, calls) || CALL(sum, plugin_sum)(3, 1.25, 2.25, 3.25) != 6.75)
            return 3;
        if (__builtin_cpu_supports("avx") && !wide(vectors, calls))
            return 4;
    }
    printf("%ld\n", calls);
    return 0;
}
#endif

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "malloc") == 0)
        return tune_malloc();
    if (argc == 2 && strcmp(argv[1], "variable") == 0)
        return watch_variable();
    if (argc == 2 && strcmp(argv[1], "cancel") == 0)
        return cancel_called();
#ifdef __x86_64__
    if (argc == 2 && strcmp(argv[1], "stubs") == 0)
        return call_through_stubs();
#endif
    return 2;
}
