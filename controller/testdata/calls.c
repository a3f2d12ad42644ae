/* SPDX-License-Identifier: Apache-2.0 */
/* For each line with a number, calls a library function and a function of its
 * own so many times, and answers. Where the number is negative, it calls its
 * own alone. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

volatile int sink;

__attribute__((noinline)) void own_work(long n) { sink += (int)n; }

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
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
