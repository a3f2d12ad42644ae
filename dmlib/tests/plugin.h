/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DM_TEST_PLUGIN_H
#define DM_TEST_PLUGIN_H

void plugin_lock(long count);
void plugin_allocate(long count);
double plugin_mix(long a, long b, long c, long d, long e, long f, long g, double p, double q,
                  double r, double s, double t, double u, double v, double w, double x);
double plugin_sum(int count, ...);
#ifdef __x86_64__
#include <immintrin.h>
double plugin_wide(__m256d a, __m256d b) __attribute__((target("avx")));
#endif

#endif
