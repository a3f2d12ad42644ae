/* SPDX-License-Identifier: Apache-2.0 */
/* A parallel region that shares its work in one of several ways (-DSTATIC and so
 * on). The tests look at the code; with -DWAITS it runs until its input ends. */
#include <omp.h>
#include <stdio.h>

double data[1000], scratch[64];

__attribute__((noinline)) void helper(int i) { scratch[omp_get_thread_num()] += data[i]; }

__attribute__((noinline)) void below(int parts) {
    int part = omp_get_thread_num(), i;

    for (i = part * 1000 / parts; i < (part + 1) * 1000 / parts; i++)
        data[i] += 1;
}

int main(void) {
    int i, parts = omp_get_max_threads();

    (void)i, (void)parts;
#ifdef WAITS
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
#endif
#if defined(STATIC)
#pragma omp parallel for
    for (i = 0; i < 1000; i++)
        data[i] += 1;
#elif defined(DYNAMIC)
#pragma omp parallel for schedule(dynamic)
    for (i = 0; i < 1000; i++)
        data[i] += 1;
#elif defined(NOBODY)
#pragma omp parallel
#pragma omp atomic
    data[0] += 1;
#elif defined(SCRATCH)
#pragma omp parallel for schedule(dynamic)
    for (i = 0; i < 1000; i++)
        scratch[omp_get_thread_num()] += data[i];
#elif defined(HELPER)
#pragma omp parallel for
    for (i = 0; i < 1000; i++)
        helper(i);
#elif defined(BY_NUMBER)
#pragma omp parallel private(i)
    for (i = omp_get_thread_num(); i < 1000; i += parts)
        data[i] += 1;
#else
#pragma omp parallel
    below(parts);
#endif
    return 0;
}
