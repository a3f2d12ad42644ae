/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that are bound to one CPU, as the first ranks of two jobs are to the
 * first core, and wait for each other without sleeping, as MPI ranks do. An
 * iteration is a step of both, of some 30 us, of which each writes four records.
 * With "free" they are not bound.
 *
 *     bound_exchange SECONDS [free]
 */
#define _GNU_SOURCE
#include "workload.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 10000, RECORDS = 4 };

/* One counter for each process, on cache lines of their own. */
struct shared {
    _Alignas(64) atomic_uint_least64_t steps[2];
    _Alignas(64) atomic_int over;
};

static void bind_to_first(void) {
    cpu_set_t allowed, one;
    int cpu = 0;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        perror("sched_setaffinity");
}

/* A step of one process: it computes, and writes what came of it. */
static void step(int to) {
    static volatile double x = 1;
    char record[32] = {0};

    for (int i = 0; i < ROUNDS; i++)
        x = x * 1.0000001 + 1e-9;
    for (int i = 0; i < RECORDS; i++)
        if (write(to, record, sizeof(record)) < 0)
            _exit(1);
}

/* Steps until it is over, each after the other process has made the last one. */
static void exchange(struct shared *s, int self, double seconds, int to) {
    struct progress p = {0};

    if (self == 0)
        p = progress_begin();
    for (uint64_t n = 1; !atomic_load(&s->over); n++) {
        step(to);
        atomic_store(&s->steps[self], n);
        while (atomic_load(&s->steps[1 - self]) < n && !atomic_load(&s->over))
            ;
        if (self == 0 && progress_step(&p, n) >= seconds)
            atomic_store(&s->over, 1);
    }
    if (self == 0)
        progress_end(&p, atomic_load(&s->steps[1]));
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int to = open("/dev/null", O_WRONLY);
    pid_t child;

    if (s == MAP_FAILED || to < 0) {
        perror("bound_exchange");
        return 1;
    }
    if (argc <= 2)
        bind_to_first();
    child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    exchange(s, child == 0, seconds, to);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
