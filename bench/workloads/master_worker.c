/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A master and its workers, which are processes behind pipes: in each round the
 * master sends the whole of its data to every worker, one after the other, and
 * each worker computes its part of the round and answers. The number of workers
 * that get work is a variable, read at each round.
 *
 *     master_worker SECONDS WORKERS
 */
#include "workload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 32, DATA = 256 << 10, WORK = 2000000 };

/* The knob. */
volatile int workers = 1;

struct part {
    long steps; /* 0: the end */
    char data[DATA];
};

static struct { int to, from; } link_of[MOST];
static struct part part;

static void all(ssize_t (*move)(int, void *, size_t), int fd, void *buffer, size_t size) {
    char *at = buffer;

    while (size > 0) {
        ssize_t n = move(fd, at, size);

        if (n <= 0)
            _exit(0);
        at += n;
        size -= (size_t)n;
    }
}

static ssize_t put(int fd, void *buffer, size_t size) { return write(fd, buffer, size); }

__attribute__((noinline)) double work_on(long steps) {
    double x = (double)steps;
    long i;

    for (i = 0; i < steps; i++)
        x = x * 0.999999 + 1e-6;
    return x;
}

static void worker(int from, int to) {
    for (;;) {
        double result;

        all(read, from, &part, sizeof part);
        if (part.steps == 0)
            _exit(0);
        result = work_on(part.steps);
        all(put, to, &result, sizeof result);
    }
}

__attribute__((noinline)) void hand_out(int w, long steps) {
    part.steps = steps;
    all(put, link_of[w].to, &part, sizeof part);
}

__attribute__((noinline)) double play_round(void) {
    int n = workers < 1 ? 1 : workers > MOST ? MOST : workers, w;
    double sum = 0, result;

    for (w = 0; w < n; w++)
        hand_out(w, WORK / n);
    for (w = 0; w < n; w++) {
        all(read, link_of[w].from, &result, sizeof result);
        sum += result;
    }
    return sum;
}

static void start(int w) {
    int task[2], result[2];

    if (pipe(task) < 0 || pipe(result) < 0) {
        perror("pipe");
        exit(1);
    }
    if (fork() == 0) {
        close(task[1]);
        worker(task[0], result[1]);
    }
    close(task[0]);
    close(result[1]);
    link_of[w].to = task[1];
    link_of[w].from = result[0];
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10, sum = 0;
    struct progress p;
    uint64_t rounds = 0;
    int w;

    workers = argc > 2 ? atoi(argv[2]) : 1;
    memset(part.data, 1, sizeof part.data);
    for (w = 0; w < MOST; w++)
        start(w);
    p = progress_begin();
    do {
        sum += play_round();
        rounds++;
    } while (progress_step(&p, rounds) < seconds);
    progress_end(&p, rounds);
    for (w = 0; w < MOST; w++)
        hand_out(w, 0);
    while (wait(NULL) > 0)
        ;
    return sum == 0;
}
