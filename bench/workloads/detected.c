// SPDX-License-Identifier: Apache-2.0
/*
 * detected PROGRAM: executes PROGRAM, which is this file under another name, and
 * tells it when.
 * detected run TIME: prints TIME and when main began, calls detected_call() a
 * hundred times, and waits for the end of its input. Times are CLOCK_MONOTONIC
 * in nanoseconds.
 */
#include <stdio.h>
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

    if (argc == 2) {
        snprintf(executed, sizeof(executed), "%llu", now());
        execl(argv[1], argv[1], "run", executed, (char *)NULL);
        return 127;
    }
    for (int i = 0; i < 100; i++)
        detected_call();
    printf("%s %llu\n", argv[2], begun);
    fflush(stdout);
    getchar();
    return 0;
}
