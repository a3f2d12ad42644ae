/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that hand a byte to and fro through pipes for SECONDS. They run
 * where the scheduler puts them, or are bound: "apart" to the first and the last CPU
 * that there is, "together" to the first. An iteration is a round trip.
 *
 *     ping_pong SECONDS [apart|together]
 */
#define _GNU_SOURCE
#include "workload.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Binds the caller to the first of the CPUs that it may use, or to the last. */
static void bind_to(int last) {
    cpu_set_t allowed, one;
    int found = -1;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && (last || found < 0); cpu++)
        if (CPU_ISSET(cpu, &allowed))
            found = cpu;
    CPU_ZERO(&one);
    CPU_SET(found, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        perror("sched_setaffinity");
}

static void answer(int from, int to) {
    char byte;

    while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
        ;
    _exit(0);
}

static void ask_for(int to, int from, double seconds) {
    struct progress p = progress_begin();
    uint64_t trips = 0;
    char byte = 'x';

    while (write(to, &byte, 1) == 1 && read(from, &byte, 1) == 1)
        if (progress_step(&p, ++trips) >= seconds)
            break;
    progress_end(&p, trips);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    const char *where = argc > 2 ? argv[2] : "";
    int there[2], back[2];
    pid_t child;

    if (pipe(there) < 0 || pipe(back) < 0 || (child = fork()) < 0) {
        perror("ping_pong");
        return 1;
    }
    if (*where)
        bind_to(child == 0 && !strcmp(where, "apart"));
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        answer(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    ask_for(there[1], back[0], seconds);
    close(there[1]);
    waitpid(child, NULL, 0);
    return 0;
}
