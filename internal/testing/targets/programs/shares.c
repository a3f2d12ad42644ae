/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: another process has the same memory, which therefore outlives the
 * program when that executes itself again, told to by "exec". */
#define _GNU_SOURCE
#include "target.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

static char stack[65536] __attribute__((aligned(16)));

static int other(void *parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == *(pid_t *)parent)
        pause();
    return 0;
}

int main(int argc, char **argv) {
    (void)argc;
    target_again = argv;
    pid_t self = getpid();
    if (clone(other, stack + sizeof stack, CLONE_VM | SIGCHLD, &self) < 0)
        return 1;
    begin(napping, 0);
    return target_serve(argv);
}
