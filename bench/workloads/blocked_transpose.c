/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposes a matrix again and again, tile by tile of TILE rows and columns. Small
 * tiles use a part of each cache line and pay for their loops; large ones lose lines
 * and pages before they are used again. Which tile is the best is up to the caches,
 * and no formula of a few terms tells it. An iteration is four transpositions.
 *
 *     blocked_transpose SECONDS [TILE]
 */
#include "workload.h"

#include <stdlib.h>

enum { ROWS = 512, TIMES = 4 };

/* The knob. */
volatile int tile = ROWS;

static double from[ROWS][ROWS] __attribute__((aligned(4096)));
static double to[ROWS][ROWS] __attribute__((aligned(4096)));

static int least(int a, int b) { return a < b ? a : b; }

static void transpose(void) {
    int size = tile < 1 ? 1 : tile, i, j, row, column;

    for (i = 0; i < ROWS; i += size)
        for (j = 0; j < ROWS; j += size)
            for (row = i; row < least(i + size, ROWS); row++)
                for (column = j; column < least(j + size, ROWS); column++)
                    to[column][row] = from[row][column];
}

__attribute__((noinline)) void step(void) {
    int i;

    for (i = 0; i < TIMES; i++)
        transpose();
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    struct progress p;
    uint64_t rounds = 0;
    int i, j;

    if (argc > 2)
        tile = atoi(argv[2]);
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < ROWS; j++)
            from[i][j] = i * ROWS + j;
    p = progress_begin();
    do {
        step();
        rounds++;
    } while (progress_step(&p, rounds) < seconds);
    progress_end(&p, rounds);
    return to[1][0] == from[0][1] ? 0 : 1;
}
