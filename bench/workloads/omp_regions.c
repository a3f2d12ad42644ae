/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short OpenMP parallel regions, one after the other, for SECONDS: what a solver
 * does whose loops are small. Each region divides a vector among its threads.
 *
 *     omp_regions SECONDS [ELEMENTS]
 */
#include "workload.h"

#include <stdlib.h>

enum { MOST = 1 << 20 };

static double vector[MOST];

static void region(long elements) {
    long i;

#pragma omp parallel for
    for (i = 0; i < elements; i++)
        vector[i] = vector[i] * 0.999999 + 1e-6;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    long elements = argc > 2 ? atol(argv[2]) : 2000;
    uint64_t iterations = 0;
    struct progress p;

    if (elements < 1 || elements > MOST)
        return 2;
    p = progress_begin();
    do
        region(elements);
    while (progress_step(&p, ++iterations) < seconds);
    progress_end(&p, iterations);
    return 0;
}
