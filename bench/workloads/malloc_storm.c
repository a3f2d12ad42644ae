/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc and free of blocks between 256 KB and 8 MB, every page touched, for
 * SECONDS. The default allocator gives the memory back each time.
 *
 *     malloc_storm SECONDS
 */
#include "workload.h"

#include <stdlib.h>

enum { BLOCKS = 16, PAGE = 4096 };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t block_size(uint64_t *state) {
    const size_t least = 256 << 10, most = 8 << 20;

    return least + next_random(state) % (most - least);
}

static void round_of_blocks(uint64_t *state) {
    char *block[BLOCKS];
    int i;

    for (i = 0; i < BLOCKS; i++) {
        size_t size = block_size(state), at;

        block[i] = malloc(size);
        if (block[i] == NULL) {
            perror("malloc");
            exit(1);
        }
        for (at = 0; at < size; at += PAGE)
            *(volatile char *)(block[i] + at) = 1;
    }
    for (i = 0; i < BLOCKS; i++)
        free(block[i]);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    struct progress p = progress_begin();
    uint64_t state = 88172645463325252ull, iterations = 0;

    do
        round_of_blocks(&state);
    while (progress_step(&p, ++iterations) < seconds);
    progress_end(&p, iterations);
    return 0;
}
