/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a call costs, in nanoseconds, of a function of each of three
 * kinds: one whose entry can be patched, one called through the GOT, and one
 * whose first bytes leave it to the kernel, at the best price that a uprobe
 * has (its first instruction is a push). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile long sink;

__attribute__((noinline)) void own_function(long n) { sink += n; }

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

#define TIME(name, calls, statement)                                                               \
    do {                                                                                           \
        double best = 1e18;                                                                        \
        for (int round = 0; round < 5; round++) {                                                  \
            double begin = now();                                                                  \
            for (long i = 0; i < (calls); i++)                                                     \
                statement;                                                                         \
            double each = (now() - begin) / (double)(calls);                                       \
            best = each < best ? each : best;                                                      \
        }                                                                                          \
        printf("%s %.3f\n", name, best);                                                           \
    } while (0)

int main(void) {
    TIME("own_function", 500000L, own_function(i));
    TIME("labs", 500000L, sink += labs(i));
    TIME("kernel_function", 100000L, kernel_function());
    return 0;
}
