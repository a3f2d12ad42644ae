/* SPDX-License-Identifier: Apache-2.0 */
/* For each line with a number, calls a library function and a function of its
 * own so many times, and answers. Where the number is negative, it calls its
 * own alone. With COMES_BY it comes by a safe point while it waits for a line, too. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

volatile int sink;

__attribute__((noinline)) void own_work(long n) { sink += (int)n; }

static char *next_line(char *line, int size) {
#ifdef COMES_BY
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    while (poll(&input, 1, 10) == 0) {
        void *volatile block = malloc(100);
        free(block);
    }
#endif
    return fgets(line, size, stdin);
}

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (next_line(line, sizeof line)) {
        long n = strtol(line, NULL, 10);
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        for (long i = 0; i < -n; i++)
            own_work(i);
        for (long i = 0; i < n; i++) {
            sink += getppid();
            own_work(i);
        }
        puts("done");
    }
    return 0;
}
