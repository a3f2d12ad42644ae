/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a hundred functions of its own and a hundred of a library
 * (many_library.c), which it calls all the time: each once in a round, with
 * 200 us of sleep between rounds. It is ready when it says so, and ends with
 * its standard input.
 *
 *     many_functions
 */
#include <poll.h>
#include <stdio.h>

#include "many.h"

long many_state[HUNDRED];

/* Three kinds of functions, so that not all begin alike. */
#define LEAF(n)                                                                                    \
    NOINLINE long own_##n(long x) {                                                                \
        for (long i = 0; i < 4; i++)                                                               \
            many_state[i] += x ^ i;                                                                \
        return x + 1##n;                                                                           \
    }
#define CALLER(n)                                                                                  \
    NOINLINE long own_##n(long x) {                                                                \
        long y = many_helper(x + 1##n);                                                            \
        return y + many_helper(x - y);                                                             \
    }
#define FRAME(n)                                                                                   \
    NOINLINE long own_##n(long x) {                                                                \
        volatile long copy[16];                                                                    \
        for (int i = 0; i < 16; i++)                                                               \
            copy[i] = x + i;                                                                       \
        return copy[x & 15] + 1##n;                                                                \
    }

NOINLINE long many_helper(long x) {
    __asm__ volatile("" : "+r"(x));
    return x * 3;
}

/* clang-format off */
TENS(LEAF, 0) TENS(LEAF, 1) TENS(LEAF, 2) TENS(LEAF, 3)
TENS(CALLER, 4) TENS(CALLER, 5) TENS(CALLER, 6)
TENS(FRAME, 7) TENS(FRAME, 8) TENS(FRAME, 9)

#define DECLARE(n) long library_##n(long x);
ALL(DECLARE)
DECLARE(last)
/* clang-format on */

#define CALL(n) x += own_##n(x) + library_##n(x);

            int main(void) {
    struct pollfd in = {.fd = 0, .events = POLLIN};
    long x = 1;

    printf("ready\n");
    fflush(stdout);
    do {
        ALL(CALL)
        x += library_last(x);
        struct timespec pause = {.tv_nsec = 200000};
        nanosleep(&pause, NULL);
    } while (poll(&in, 1, 0) == 0);
    return x == 0;
}
