/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gatestub LIBRARY none|idle|trace -- COMMAND...`: runs a command under a test
 * controller that traces every hook of every process, and ends as it does.
 * Standard error gets one line of what was seen.
 */
#include "controller.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void trace_all(struct controller *c, struct process *p) {
    (void)c;
    for (unsigned i = 0; i < ATTUNE_HOOK_COUNT; i++)
        control_set(p, i,
                    ATTUNE_CTL_EVENT | ATTUNE_CTL_AGGREGATE | (i % 2 ? ATTUNE_CTL_DURATION : 0));
}

static void report(const struct controller *c) {
    uint64_t received = 0, dropped = 0;
    int ready = 0, forked = 0;
    for (int i = 0; i < c->count; i++) {
        struct process *p = c->processes[i];
        ready += p->ready.magic != 0 && p->ready.status == ATTUNE_READY_OK;
        forked += (p->hello.flags & ATTUNE_HELLO_FORKED) != 0;
        dropped += p->header ? lost(p) : 0;
        for (unsigned k = 0; k < ATTUNE_POINT_COUNT; k++)
            received += p->received[k];
    }
    fprintf(stderr, "gatestub: %d processes, %d forked, %d ready, %lu records, %lu lost\n",
            c->count, forked, ready, received, dropped);
}

int main(int argc, char **argv) {
    struct controller c = {.records = 1 << 12};
    int status = 0;
    if (argc < 5 || strcmp(argv[3], "--") != 0)
        fail("usage: gatestub LIBRARY none|idle|trace -- COMMAND...");
    bool none = strcmp(argv[2], "none") == 0;
    if (strcmp(argv[2], "trace") == 0)
        c.place = trace_all;
    controller_start(&c);
    pid_t pid = spawn(none ? NULL : argv[1], none ? NULL : &c, argv + 4, NULL, NULL);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        drain_all(&c);
        poll(NULL, 0, 1);
    }
    drain_all(&c);
    report(&c);
    controller_stop(&c);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
