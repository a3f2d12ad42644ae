/* SPDX-License-Identifier: Apache-2.0 */
/* What the workloads share that move bytes from one process to another. */
#ifndef ATTUNE_BENCH_STREAM_H
#define ATTUNE_BENCH_STREAM_H

#include "workload.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Writes blocks until the reader has ended, which ends the writer, too. */
static inline _Noreturn void stream_write(int to, char *block, size_t size) {
    signal(SIGPIPE, SIG_DFL);
    memset(block, 'x', size);
    while (write(to, block, size) >= 0)
        ;
    _exit(1);
}

/* Reads for so many seconds; an iteration is a megabyte. */
static inline void stream_read(int from, char *block, size_t size, double seconds) {
    const uint64_t megabyte = 1000000;
    struct progress p = progress_begin();
    uint64_t bytes = 0;
    ssize_t n;

    while ((n = read(from, block, size)) > 0) {
        bytes += (uint64_t)n;
        if (progress_step(&p, bytes / megabyte) >= seconds)
            break;
    }
    progress_end(&p, bytes / megabyte);
}

#endif
