/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread that changes its user id most of the time. The C library
 * holds the lock of its thread stacks while it waits for all other threads to do
 * so too, and one of these cannot: it waits for a child that vfork(2) made. With an
 * argument that thread hardly rests, and nothing keeps the others from it: the other one
 * waits for signals. */
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
}

static void change_and_nap(void) {
    change();
    nap();
}

static void *changing(void *unused) {
    (void)unused;
    return forever(change_and_nap);
}

static void change_often(void) {
    change();
    usleep(100);
}

static void *changing_often(void *unused) {
    (void)unused;
    return forever(change_often);
}

static void *waiting(void *unused) {
    (void)unused;
    return forever(wait_for_child);
}

static void *pausing(void *unused) {
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

int main(int argc, char **argv) {
    signal(SIGCHLD, SIG_IGN);
    begin(argc > 1 ? changing_often : changing, 0); /* the test names it by its order */
    begin(argc > 1 ? pausing : waiting, 0);
    return target_serve(argv);
}
