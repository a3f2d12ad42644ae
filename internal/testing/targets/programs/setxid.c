/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread that changes its user id most of the time. The C library
 * holds the lock of its thread stacks while it waits for all other threads to do
 * so too, and one of these cannot: it waits for a child that vfork(2) made. */
#include "target.h"
#include <signal.h>

static void wait_for_child(void) {
    pid_t child = vfork();
    if (child == 0) {
        usleep(300000);
        _exit(0);
    }
    nap();
}

static void change(void) {
    if (setuid(getuid()) != 0)
        is_wrong();
    nap();
}

static void *changing(void *unused) {
    (void)unused;
    return forever(change);
}

static void *waiting(void *unused) {
    (void)unused;
    return forever(wait_for_child);
}

int main(int argc, char **argv) {
    (void)argc;
    signal(SIGCHLD, SIG_IGN);
    begin(changing, 0); /* the second thread: the test names it */
    begin(waiting, 0);
    return target_serve(argv);
}
