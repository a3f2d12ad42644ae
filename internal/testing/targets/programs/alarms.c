/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: signals arrive all the time, some restart system calls and some do
 * not, and a thread insists on the length of its sleep. */
#include "target.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long signals;

static void count(int signal) {
    (void)signal;
    signals++;
    target_value(2); /* what is done to the function is done in a handler too */
}

static void sleep_exactly(void) {
    struct timespec left = {.tv_nsec = 3000000};
    while (nanosleep(&left, &left) != 0)
        if (errno != EINTR)
            is_wrong();
}

static void *exact(void *unused) {
    (void)unused;
    return forever(sleep_exactly);
}

/* Once the frame of main is as deep as it stays: what a handler left behind in a
 * buffer there looks as if main were in a handler for ever. */
static void storm(void) {
    sigset_t alarms; /* the main thread reads lines, which must not be cut off */
    struct sigaction action = {.sa_handler = count};
    struct itimerval often = {{.tv_usec = 500}, {.tv_usec = 500}};
    sigaction(SIGALRM, &action, NULL);
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    begin(computing, 0);
    begin(exact, 0);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
}

static void still_arrive(void) {
    unsigned long before = signals;
    for (int i = 0; i < 20000 && signals == before; i++)
        usleep(1000);
    if (signals == before)
        is_wrong();
}

int main(int argc, char **argv) {
    (void)argc;
    target_begin = storm;
    target_look = still_arrive;
    return target_serve(argv);
}
