/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and frees large blocks until its input ends, from another thread
 * than the one that reads; answers each line with the number of rounds. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_ulong rounds;
volatile int knob = 1;

static void *storm(void *arg) {
    for (;;) {
        char *p = malloc(1 << 20);
        if (!p)
            return arg;
        memset(p, 1, 4096);
        free(p);
        rounds++;
    }
}

int main(void) {
    pthread_t thread;
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (pthread_create(&thread, NULL, storm, NULL))
        return 1;
    puts("ready");
    while (fgets(line, sizeof line, stdin))
        printf("%lu %d\n", (unsigned long)rounds, knob);
    return 3;
}
