/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: how they begin, wait and end. */
#include "target.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *worker(void *unused) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    lock_pairs(&mutex, number[1]);
    for (long i = 0; i < number[2]; i++)
        free(malloc(4242));
    return unused;
}

/* threads COUNT PAIRS MALLOCS: all at once */
static void threads(void) {
    pthread_t *all = calloc((size_t)number[0], sizeof(*all));
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (long i = 0; i < number[0]; i++)
        CHECK(pthread_create(&all[i], &small, worker, NULL) == 0);
    for (long i = 0; i < number[0]; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    free(all);
}

/* sequence COUNT PAIRS: one thread after the other */
static void sequence(void) {
    for (long i = 0; i < number[0]; i++) {
        pthread_t one;
        CHECK(pthread_create(&one, NULL, worker, NULL) == 0);
        CHECK(pthread_join(one, NULL) == 0);
        usleep(500);
    }
}

static pthread_key_t key;

static void at_end(void *count) { lock_pairs(&own, *(long *)count); }

static void *ends(void *unused) {
    pthread_setspecific(key, &number[0]);
    lock_pairs(&own, 1);
    return unused;
}

/* destructor PAIRS: hooks in the destructor of a key younger than DMLib's */
static void destructor(void) {
    pthread_t one;
    CHECK(pthread_key_create(&key, at_end) == 0);
    CHECK(pthread_create(&one, NULL, ends, NULL) == 0);
    CHECK(pthread_join(one, NULL) == 0);
}

static int rounds;

static void at_each_round(void *count) {
    lock_pairs(&own, *(long *)count);
    if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(key, count);
}

/* destructors PAIRS: the same as long as the C library calls any, after DMLib's last */
static void destructors(void) {
    pthread_t one;
    CHECK(pthread_key_create(&key, at_each_round) == 0);
    CHECK(pthread_create(&one, NULL, ends, NULL) == 0);
    CHECK(pthread_join(one, NULL) == 0);
    CHECK(rounds == PTHREAD_DESTRUCTOR_ITERATIONS);
}

static int pipe_ends[2];
static bool cleaned;
static _Atomic int reader;

static void clean(void *unused) {
    (void)unused;
    cleaned = true;
}

static void *reads(void *unused) {
    char byte;
    reader = (int)syscall(SYS_gettid);
    pthread_cleanup_push(clean, NULL);
    for (;;)
        CHECK(read(pipe_ends[0], &byte, 1) == 1);
    pthread_cleanup_pop(0);
    return unused;
}

static _Atomic bool begun;

static void *never_ends(void *unused) {
    pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
    pthread_cleanup_push(clean, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    begun = true;
    for (;;)
        lock_pairs(&mine, 100);
    pthread_cleanup_pop(0);
    return unused;
}

/* anywhere COUNT: threads are cancelled wherever they are, in hooks above all */
static void anywhere(void) {
    for (long i = 0; i < number[0]; i++) {
        pthread_t one;
        void *result;
        begun = cleaned = false;
        CHECK(pthread_create(&one, NULL, never_ends, NULL) == 0);
        while (!begun)
            sched_yield();
        usleep((useconds_t)(i % 7) * 20);
        CHECK(pthread_cancel(one) == 0);
        CHECK(pthread_join(one, &result) == 0);
        CHECK(result == PTHREAD_CANCELED && cleaned);
    }
}

/* Whether the reader has taken all and waits for more. */
static bool waits(void) {
    char path[64];
    int left = 1, call = -1;
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", reader);
    if (ioctl(pipe_ends[0], FIONREAD, &left) != 0 || left > 0)
        return false;
    FILE *file = fopen(path, "r"); /* without our read */
    bool known = file != NULL && fscanf(file, "%d", &call) == 1;
    if (file != NULL)
        fclose(file);
    return known && call == SYS_read;
}

/* cancel: a thread is cancelled while it waits in read */
static void cancel(void) {
    pthread_t one;
    void *result;
    CHECK(pipe(pipe_ends) == 0);
    CHECK(pthread_create(&one, NULL, reads, NULL) == 0);
    CHECK(write(pipe_ends[1], "ab", 2) == 2);
    while (!waits())
        usleep(1000);
    CHECK(pthread_cancel(one) == 0);
    CHECK(pthread_join(one, &result) == 0);
    CHECK(result == PTHREAD_CANCELED && cleaned);
    CHECK(write(pipe_ends[1], "c", 1) == 1);
    char byte;
    CHECK(read(pipe_ends[0], &byte, 1) == 1 && byte == 'c');
}

/* hold MICROSECONDS: lock waits for another thread so long */
static void *holder(void *unused) {
    pthread_mutex_lock(&own);
    CHECK(write(pipe_ends[1], "x", 1) == 1);
    usleep((useconds_t)number[0]);
    pthread_mutex_unlock(&own);
    return unused;
}

static void hold(void) {
    pthread_t one;
    char byte;
    CHECK(pipe(pipe_ends) == 0);
    CHECK(pthread_create(&one, NULL, holder, NULL) == 0);
    CHECK(read(pipe_ends[0], &byte, 1) == 1);
    lock_pairs(&own, 1);
    pthread_join(one, NULL);
}

/* blocked: a read and then a lock wait for another thread, each until SIGUSR1 comes */
static sigset_t go;

static void *releases(void *unused) {
    int signal;
    pthread_mutex_lock(&own);
    begun = true;
    CHECK(sigwait(&go, &signal) == 0);
    CHECK(write(pipe_ends[1], "x", 1) == 1);
    CHECK(sigwait(&go, &signal) == 0);
    pthread_mutex_unlock(&own);
    return unused;
}

static void blocked(void) {
    pthread_t one;
    char byte;
    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &go, NULL) == 0);
    CHECK(pipe(pipe_ends) == 0);
    CHECK(pthread_create(&one, NULL, releases, NULL) == 0);
    while (!begun)
        sched_yield();
    CHECK(read(pipe_ends[0], &byte, 1) == 1);
    lock_pairs(&own, 1);
    pthread_join(one, NULL);
}

/* deadlock: a mutex that knows its owner is locked twice */
static void deadlock(void) {
    pthread_mutexattr_t careful;
    pthread_mutex_t mutex;
    CHECK(pthread_mutexattr_init(&careful) == 0);
    CHECK(pthread_mutexattr_settype(&careful, PTHREAD_MUTEX_ERRORCHECK) == 0);
    CHECK(pthread_mutex_init(&mutex, &careful) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_lock(&mutex) == EDEADLK);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

/* clocklock PAIRS: timed locks of a free mutex, and one of a mutex that is held */
static void clocklock(void) {
    struct timespec past = {0};
    for (long i = 0; i < number[0]; i++) {
        CHECK(pthread_mutex_clocklock(&own, CLOCK_MONOTONIC, &past) == 0);
        CHECK(pthread_mutex_unlock(&own) == 0);
    }
    CHECK(pthread_mutex_lock(&own) == 0);
    CHECK(pthread_mutex_clocklock(&own, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&own) == 0);
}

const struct subject thread_subjects[] = {
    {"threads", threads},     {"sequence", sequence}, {"destructor", destructor},
    {"cancel", cancel},       {"hold", hold},         {"blocked", blocked},
    {"clocklock", clocklock}, {"deadlock", deadlock}, {"destructors", destructors},
    {"anywhere", anywhere},   {NULL, NULL},
};
