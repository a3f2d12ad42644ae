// SPDX-License-Identifier: Apache-2.0
/*
 * detected PROGRAM [MICROSECONDS]: executes PROGRAM, which is this file under another
 * name, and tells it when.
 * detected run TIME MICROSECONDS: calls detected_call() a hundred times, so many
 * microseconds apart, prints TIME and when main began, and waits for the end of its
 * input. Times are CLOCK_MONOTONIC in nanoseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long long now(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

__attribute__((noinline)) void detected_call(void) { __asm__ volatile("" ::: "memory"); }

int main(int argc, char **argv) {
    unsigned long long begun = now();
    char executed[32];

    if (argc < 4) {
        snprintf(executed, sizeof(executed), "%llu", now());
        execl(argv[1], argv[1], "run", executed, argc > 2 ? argv[2] : "0", (char *)NULL);
        return 127;
    }
    for (int i = 0; i < 100; i++) {
        unsigned long long next = begun + (i + 1) * strtoull(argv[3], NULL, 10) * 1000;

        detected_call();
        for (unsigned long long at = now(); at < next; at = now())
            usleep((next - at) / 1000 + 1);
    }
    printf("%s %llu\n", argv[2], begun);
    fflush(stdout);
    getchar();
    return 0;
}
