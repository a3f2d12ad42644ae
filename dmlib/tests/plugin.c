/* SPDX-License-Identifier: Apache-2.0 */
/* A library of the target program: loaded late, or called through stubs. */
#include "plugin.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void plugin_lock(long count) {
    while (count-- > 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void *volatile block; /* the compiler must not see through it */

void plugin_allocate(long count) {
    while (count-- > 0) {
        block = aligned_alloc(64, 64);
        free(block);
    }
}

/* Integers and doubles in all registers, and one of each on the stack. */
double plugin_mix(long a, long b, long c, long d, long e, long f, long g, double p, double q,
                  double r, double s, double t, double u, double v, double w, double x) {
    return (double)(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g) + p + 2 * q + 3 * r + 4 * s +
           5 * t + 6 * u + 7 * v + 8 * w + 9 * x;
}

/* The number of doubles arrives in al. */
double plugin_sum(int count, ...) {
    va_list numbers;
    double sum = 0;
    va_start(numbers, count);
    while (count-- > 0)
        sum += va_arg(numbers, double);
    va_end(numbers);
    return sum;
}

#ifdef __x86_64__
__attribute__((target("avx"))) double plugin_wide(__m256d a, __m256d b) {
    double parts[4];
    _mm256_storeu_pd(parts, _mm256_add_pd(a, b));
    return parts[0] + parts[1] + parts[2] + parts[3];
}
#endif
