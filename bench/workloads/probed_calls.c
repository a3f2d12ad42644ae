/* SPDX-License-Identifier: Apache-2.0 */
/* probed_calls [CALLS]: prints what a call costs, in nanoseconds, of functions
 * of three kinds: one whose entry can be patched, two called through the GOT, of
 * which one takes a string, and one whose first bytes leave it to the kernel, at the
 * best price that a uprobe has (its first instruction is a push). The best of seven rounds
 * of so many calls, with a pause after each in which a tool can take away what
 * it recorded; with TRACEPOINT the first has one of LTTng-UST in it. And of two
 * that do for themselves what a tool would have to add to the first. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef TRACEPOINT
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_calls.h"
#define TRACE(n) lttng_ust_tracepoint(attune_bench, call, n)
#else
#define TRACE(n) ((void)0)
#endif

static volatile long sink;

__attribute__((noipa, hot)) void own_function(long n, const char *name) {
    (void)name;
    TRACE(n);
    sink += n;
}

/* The bytes behind the push would be a jump into this very function. */
__asm__(".text\n.globl kernel_function\n.type kernel_function, @function\n"
        "kernel_function: push %rbp\n mov $0, %eax\n pop %rbp\n ret\n"
        ".size kernel_function, . - kernel_function\n.balign 512\n");
void kernel_function(void);

static double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A record of each call, for a reader in another thread; the oldest are overwritten. */
__attribute__((noipa, hot)) void recorded_by_hand(long n, const char *name) {
    static struct {
        double time;
        long argument;
    } records[32768];
    static atomic_ulong head;
    unsigned long at = atomic_load_explicit(&head, memory_order_relaxed);

    (void)name;
    records[at % 32768].time = now();
    records[at % 32768].argument = n;
    atomic_store_explicit(&head, at + 1, memory_order_release);
    sink += n;
}

/* How long calls take: how many, in all, the longest. */
__attribute__((noipa, hot)) void timed_by_hand(long n, const char *name) {
    static volatile double sum, longest;
    static volatile long count;
    double begin = now(), took;

    (void)name;
    sink += n;
    took = now() - begin;
    count++;
    sum += took;
    if (took > longest)
        longest = took;
}

static void pause_for(long milliseconds) {
    struct timespec pause = {.tv_nsec = 1000000};

    for (; milliseconds > 0; milliseconds--)
        nanosleep(&pause, NULL);
}

/* Half a second in which a tool may attach from outside; the program does what
 * lets it be reached. */
static void prepare(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    for (int i = 0; i < 400; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pause_for(1);
    }
}

#define TIME(name, calls, statement)                                                               \
    do {                                                                                           \
        double best = 1e18;                                                                        \
        for (int round = 0; round < 7; round++) {                                                  \
            pause_for(20);                                                                         \
            double begin = now();                                                                  \
            for (long i = 0; i < (calls); i++)                                                     \
                statement;                                                                         \
            double each = (now() - begin) / (double)(calls);                                       \
            best = each < best ? each : best;                                                      \
        }                                                                                          \
        printf("%s %.3f\n", name, best);                                                           \
        fflush(stdout);                                                                            \
    } while (0)

int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : 50000;
    const char *digit = "1";

    prepare();
    TIME("own_function", calls, own_function(i, argv[0]));
    TIME("recorded_by_hand", calls, recorded_by_hand(i, argv[0]));
    TIME("timed_by_hand", calls, timed_by_hand(i, argv[0]));
    TIME("labs", calls, sink += labs(i));
    TIME("a64l", calls, sink += a64l(digit));
    TIME("kernel_function", calls, kernel_function());
    return 0;
}
