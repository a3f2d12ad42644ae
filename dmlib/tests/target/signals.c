/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers that use what is hooked, and that never return. */
#include "target.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
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

static void until_left(pthread_mutex_t *taken) {
    if (sigsetjmp(escape, 1) != 0)
        return;
    can_escape = 1;
    pthread_mutex_lock(taken);
    exit(3);
}

/* waits JUMPS PAIRS: handlers leave locks that wait, by longjmp */
static void waits(void) {
    pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
    lock_pairs(&taken, 1);
    pthread_mutex_lock(&taken);
    tick_with(jump, SA_RESTART);
    while (handled < number[0])
        until_left(&taken);
    stop_ticking();
    lock_pairs(&own, number[1]);
}

static int lowest; /* descriptor that is not open */

static void jump_from_open(int signal) {
    int saved = errno;
    if (fcntl(lowest, F_GETFD) != -1)
        jump(signal);
    errno = saved;
}

static void lock_until_left(void) {
    if (sigsetjmp(escape, 1) != 0)
        return;
    can_escape = 1;
    lock_pairs(&own, 100);
    can_escape = 0;
}

/* opens: a forked child whose handlers leave hooks by longjmp where those have opened
 * something */
static void opens(void) {
    lock_pairs(&own, 1);
    pid_t child = fork();
    if (child == 0) {
        tick_with(jump_from_open, SA_RESTART);
        lowest = null + 1;
        for (int round = 0; round < 2000; round++, usleep(1000))
            lock_until_left();
        stop_ticking();
        CHECK(handled == 0 && fcntl(lowest, F_GETFD) == -1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* asks JUMPS: a forked child whose handlers leave hooks by longjmp while it asks its
 * controller, and then do not */
static void asks(void) {
    lock_pairs(&own, 1);
    pid_t child = fork();
    if (child == 0) {
        tick_with(jump, SA_RESTART);
        while (handled < number[0])
            until_jump();
        stop_ticking();
        for (int round = 0; round < 1000; round++, usleep(1000))
            lock_pairs(&own, 100);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void fork_here(int signal) {
    (void)signal;
    int saved = errno, status;
    pid_t child = handled < number[1] ? fork() : -1;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        _exit(5);
    if (child > 0)
        handled++;
    errno = saved;
}

/* forking PAIRS FORKS: children that handlers fork go on with what these interrupted. Prints
 * how many pairs it were. */
static void forking(void) {
    pid_t parent = getpid();
    tick_with(fork_here, SA_RESTART);
    long pairs = 0;
    for (; pairs < number[0] || handled < number[1]; pairs++) {
        lock_pairs(&own, 1);
        if (getpid() != parent)
            _exit(0);
    }
    stop_ticking();
    printf("%ld\n", pairs);
}

#define ROOM (64 << 10)
#define PAINT 0x5a
static char *small_stack;
static char *deepest; /* frame of the handler */

static void in_small_stack(int signal) {
    char here;
    deepest = &here;
    handler(signal);
    lock_pairs(&own, 100);
}

/* How much the last handler has used below its own frame. */
static long used_of_stack(void) {
    char *at = small_stack;
    while (at < deepest && *at == PAINT)
        at++;
    return deepest - at;
}

static void handle_painted(void) {
    memset(small_stack, PAINT, ROOM);
    CHECK(raise(SIGUSR1) == 0);
}

/* smallstack: prints the most that a handler used of a stack of its own, whose hooks are the
 * first of the thread, and, of a forked child, those in which it registers */
static void small_stacks(void) {
    struct sigaction action = {.sa_handler = in_small_stack, .sa_flags = SA_ONSTACK};
    small_stack = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t other = {.ss_sp = small_stack, .ss_size = ROOM};
    CHECK(small_stack != MAP_FAILED && sigaltstack(&other, NULL) == 0);
    null = open("/dev/null", O_WRONLY);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    handle_painted();
    long most = used_of_stack();
    pid_t child = fork();
    for (int round = 0; round < 100 && child == 0; round++, usleep(1000)) {
        handle_painted();
        most = used_of_stack() > most ? used_of_stack() : most;
    }
    int status;
    CHECK(child == 0 || (waitpid(child, &status, 0) == child && status == 0));
    printf("%ld\n", most);
    fflush(stdout);
    if (child == 0)
        _exit(0);
}

const struct subject signal_subjects[] = {
    {"signals", signals}, {"jumps", jumps},     {"waits", waits}, {"smallstack", small_stacks},
    {"opens", opens},     {"forking", forking}, {"asks", asks},   {NULL, NULL},
};
