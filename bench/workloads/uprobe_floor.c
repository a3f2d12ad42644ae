/* SPDX-License-Identifier: Apache-2.0 */
/* For each line FUNCTION CALLS of standard input calls that function so often,
 * and prints the nanoseconds of CPU time and of real time that a call took. There
 * is one of each kind for each way of watching, so that all can be watched at
 * once and called in turns. Both kinds are at the best prices that uprobes have:
 * their first instructions are a push, and the long nop that a kernel from 6.18
 * on makes a call of. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FUNCTION(name, first)                                                                      \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n.p2align 6\n" #name ": " first   \
            "\n mov $0, %eax\n ret\n.size " #name ", . - " #name "\n");                            \
    void name(long)

#define FUNCTIONS(kind, first)                                                                     \
    FUNCTION(kind##_plain, first);                                                                 \
    FUNCTION(kind##_perf, first);                                                                  \
    FUNCTION(kind##_multi, first);                                                                 \
    FUNCTION(kind##_clock, first);                                                                 \
    FUNCTION(kind##_count, first);                                                                 \
    FUNCTION(kind##_event, first);                                                                 \
    FUNCTION(kind##_coarse, first)

FUNCTIONS(push, "push %rbp\n pop %rbp");
FUNCTIONS(nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00");

#define ROW(name)                                                                                  \
    { #name, name }
#define ROWS(kind)                                                                                 \
    ROW(kind##_plain), ROW(kind##_perf), ROW(kind##_multi), ROW(kind##_clock), ROW(kind##_count),  \
        ROW(kind##_event), ROW(kind##_coarse)

static const struct {
    const char *name;
    void (*function)(long);
} functions[] = {ROWS(push), ROWS(nop5)};

static double now(clockid_t clock) {
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void call(void (*function)(long), long calls) {
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID), real = now(CLOCK_MONOTONIC);

    for (long i = 0; i < calls; i++)
        function(i);
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    real = now(CLOCK_MONOTONIC) - real;
    printf("%.3f %.3f\n", cpu / (double)calls, real / (double)calls);
    fflush(stdout);
}

int main(void) {
    char name[32];
    long calls;

    while (scanf("%31s %ld", name, &calls) == 2) {
        size_t i = 0;

        while (i < sizeof functions / sizeof *functions && strcmp(functions[i].name, name))
            i++;
        if (i == sizeof functions / sizeof *functions)
            return 2;
        call(functions[i].function, calls);
    }
    return 0;
}
