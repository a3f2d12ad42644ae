/* SPDX-License-Identifier: Apache-2.0 */
/* For each line FUNCTION CALLS of standard input calls push_function or
 * nop5_function so often, and prints the nanoseconds of CPU time and of real
 * time that a call took. Both are at the best prices that uprobes have: their
 * first instructions are a push, and the long nop that a kernel from 6.18 on
 * makes a call of. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FUNCTION(name, first)                                                                      \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name ": " first   \
            "\n mov $0, %eax\n ret\n.size " #name ", . - " #name "\n");                            \
    void name(long)

FUNCTION(push_function, "push %rbp\n pop %rbp");
FUNCTION(nop5_function, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00");

static double now(clockid_t clock) {
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void) {
    char name[32];
    long calls;

    while (scanf("%31s %ld", name, &calls) == 2) {
        void (*function)(long) = strcmp(name, "push") ? nop5_function : push_function;
        double cpu = now(CLOCK_PROCESS_CPUTIME_ID), real = now(CLOCK_MONOTONIC);

        for (long i = 0; i < calls; i++)
            function(i);
        cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        real = now(CLOCK_MONOTONIC) - real;
        printf("%.3f %.3f\n", cpu / (double)calls, real / (double)calls);
        fflush(stdout);
    }
    return 0;
}
