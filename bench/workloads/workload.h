/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the C workloads share: the clock, and the lines that bench/ reads:
 * "start", "progress SECONDS ITERATIONS" every 0.1 s and "total SECONDS
 * ITERATIONS" at the end.
 */
#ifndef ATTUNE_BENCH_WORKLOAD_H
#define ATTUNE_BENCH_WORKLOAD_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline double seconds_now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct progress {
    double start, shown;
    FILE *out;
};

/* Begins to print to a stream; the workload's time starts now. */
static inline struct progress progress_begin_on(FILE *out) {
    double now = seconds_now();

    fputs("start\n", out);
    fflush(out);
    return (struct progress){.start = now, .shown = now, .out = out};
}

static inline struct progress progress_begin(void) { return progress_begin_on(stdout); }

/* Seconds since the beginning; prints when a tenth of a second has passed. */
static inline double progress_step(struct progress *p, uint64_t iterations) {
    double now = seconds_now();

    if (now - p->shown >= 0.1) {
        fprintf(p->out, "progress %.3f %llu\n", now - p->start, (unsigned long long)iterations);
        fflush(p->out);
        p->shown = now;
    }
    return now - p->start;
}

static inline void progress_end(const struct progress *p, uint64_t iterations) {
    fprintf(p->out, "total %.6f %llu\n", seconds_now() - p->start, (unsigned long long)iterations);
}

#endif
