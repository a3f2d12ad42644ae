/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hundred functions, many_00 to many_99, each called as often as a line on
 * the standard input says by each of THREADS threads, with as many calls of
 * getppid and pairs of malloc and free; then "done" is answered.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 2 };

#define TENS(DO, t)                                                                                \
    DO(t##0) DO(t##1) DO(t##2) DO(t##3) DO(t##4) DO(t##5) DO(t##6) DO(t##7) DO(t##8) DO(t##9)
#define ALL(DO)                                                                                    \
    TENS(DO, 0)                                                                                    \
    TENS(DO, 1)                                                                                    \
    TENS(DO, 2) TENS(DO, 3) TENS(DO, 4) TENS(DO, 5) TENS(DO, 6) TENS(DO, 7) TENS(DO, 8) TENS(DO, 9)

static volatile long state[8];

#define FUNCTION(n)                                                                                \
    __attribute__((noipa)) long many_##n(long x) {                                                 \
        for (long i = x & 1; i < 2; i++)                                                           \
            state[i] = x;                                                                          \
        return x + 1##n;                                                                           \
    }
ALL(FUNCTION)

static long rounds;

static void *work(void *unused) {
    long x = 1;
    for (long i = 0; i < rounds; i++) {
#define CALL(n) x = many_##n(x);
        ALL(CALL)
        x += getppid();
        void *volatile block = malloc(64);
        free(block);
    }
    state[7] = x;
    return unused;
}

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        pthread_t threads[THREADS];
        rounds = atol(line);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        puts("done");
    }
    return 0;
}
