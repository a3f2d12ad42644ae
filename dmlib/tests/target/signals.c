/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers that use what is hooked, and that never return. */
#include "target.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static int null;
static pthread_mutex_t handlers = PTHREAD_MUTEX_INITIALIZER;

static void handler(int signal) {
    (void)signal;
    if (write(null, "x", 1) != 1)
        _exit(4);
    pthread_mutex_lock(&handlers);
    pthread_mutex_unlock(&handlers);
    handled++;
}

static void tick_with(void (*function)(int), int flags) {
    struct sigaction action = {.sa_handler = function, .sa_flags = flags};
    struct itimerval every = {{0, 50}, {0, 50}};
    null = open("/dev/null", O_WRONLY);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

static void stop_ticking(void) {
    struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
}

/* signals PAIRS: prints how often the handler ran */
static void signals(void) {
    tick_with(handler, SA_RESTART);
    lock_pairs(&own, number[0]);
    stop_ticking();
    printf("%d\n", (int)handled);
}

static sigjmp_buf escape;
static volatile sig_atomic_t can_escape;

static void jump(int signal) {
    (void)signal;
    if (!can_escape)
        return; /* nowhere yet, or to a frame that is gone */
    can_escape = 0;
    handled++;
    siglongjmp(escape, 1);
}

/* A mutex that is new each time: the jump may leave it locked. */
static void until_jump(void) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    if (sigsetjmp(escape, 1) != 0)
        return;
    can_escape = 1;
    for (;;) {
        pthread_mutex_lock(&fresh);
        pthread_mutex_unlock(&fresh);
    }
}

/* jumps JUMPS PAIRS: handlers leave by longjmp; then all must be well again */
static void jumps(void) {
    tick_with(jump, SA_RESTART);
    while (handled < number[0])
        until_jump();
    stop_ticking();
    lock_pairs(&own, number[1]);
}

const struct subject signal_subjects[] = {
    {"signals", signals},
    {"jumps", jumps},
    {NULL, NULL},
};
