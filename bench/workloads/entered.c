/* SPDX-License-Identifier: Apache-2.0 */
/*
 * THREADS that do nothing but take and give back memory, and look whether it
 * kept what they wrote, while somebody comes and goes. A line on the standard
 * input is answered with what was done, what was wrong, and a variable.
 *
 *     entered THREADS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 8 };

volatile long knob;
static unsigned long rounds, wrong;

static void *storm(void *unused) {
    for (unsigned long i = 0;; i++) {
        char *block[BLOCKS];
        for (int b = 0; b < BLOCKS; b++) {
            block[b] = malloc(100 + (i * 37 + (unsigned long)b * 4099) % 70000);
            memset(block[b], b, 100);
        }
        for (int b = 0; b < BLOCKS; b++) {
            if (block[b][0] != b || block[b][99] != b)
                __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
            free(block[b]);
        }
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

int main(int argc, char **argv) {
    char line[64];
    int threads = argc > 1 ? atoi(argv[1]) : 4;

    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, storm, NULL) != 0)
            return 1;
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        printf("%lu %lu %ld\n", __atomic_load_n(&rounds, __ATOMIC_RELAXED),
               __atomic_load_n(&wrong, __ATOMIC_RELAXED), knob);
        fflush(stdout);
    }
    return wrong == 0 ? 0 : 2;
}
