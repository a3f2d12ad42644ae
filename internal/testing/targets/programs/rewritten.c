/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is changed while threads execute it. "hammer N" has N threads call
 * it, "wait" has one wait in each of a few system calls that every stop
 * interrupts, "halt" ends all and says how many results and how many waits were
 * wrong. "park" has a thread stay within the code that is changed, "signal" a
 * handler interrupt it there, on a stack of its own, "leave" lets it go. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>

/* 1, by instructions of which three begin in the first five bytes. The test
 * writes "mov $2, %eax" over them. */
long value(void);
/* Goes in circles, within its first five bytes, until *going is 0. */
long circle(volatile int *going);
__asm__(".globl value\n.type value, @function\n"
        "value: xor %eax, %eax\n inc %eax\n nop\n ret\n.size value, .-value\n"
        ".balign 16\n.globl circle\n.type circle, @function\n"
        "circle: xor %eax, %eax\n1: cmp (%rdi), %eax\n jne 1b\n ret\n.size circle, .-circle\n");

#define MOST 4096
static pthread_t threads[MOST];
static int started;
static volatile int halt, parked, handling;
static long waits;

static void *hammer(void *unused) {
    long bad = 0;
    while (!halt) {
        long got = value();
        bad += got != 1 && got != 2;
    }
    (void)unused;
    return (void *)bad;
}

static void *sleeper(void *unused) {
    while (!halt)
        usleep(100000);
    return unused;
}

static int epoll, semaphore;
static void *in_epoll(void *unused) {
    struct epoll_event event;
    while (!halt)
        if (epoll_wait(epoll, &event, 1, 100) < 0)
            __sync_fetch_and_add(&waits, 1);
    return unused;
}

static void *in_semaphore(void *unused) {
    struct sembuf down = {0, -1, 0};
    struct timespec timeout = {0, 100000000};
    while (!halt)
        if (semtimedop(semaphore, &down, 1, &timeout) < 0 && errno != EAGAIN)
            __sync_fetch_and_add(&waits, 1);
    return unused;
}

static void *in_signal(void *unused) {
    sigset_t set;
    struct timespec timeout = {0, 100000000};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    while (!halt)
        if (sigtimedwait(&set, NULL, &timeout) < 0 && errno != EAGAIN)
            __sync_fetch_and_add(&waits, 1);
    return unused;
}

static void handler(int number) {
    (void)number;
    handling = 1;
    while (parked)
        ;
}

static void *park(void *unused) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    circle(&parked);
    return unused;
}

static void start(void *(*run)(void *)) {
    if (pthread_create(&threads[started++], NULL, run, NULL) != 0)
        exit(3);
}

static long join(void) {
    long bad = 0;
    halt = 1;
    while (started > 0) {
        void *result;
        pthread_join(threads[--started], &result);
        bad += (long)result;
    }
    return bad;
}

int main(void) {
    char line[64];
    int n;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

    sigaction(SIGUSR1, &action, NULL);
    epoll = epoll_create1(0);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "hammer %d", &n) == 1) {
            while (n-- > 0)
                start(hammer);
        } else if (sscanf(line, "sleep %d", &n) == 1) {
            while (n-- > 0)
                start(sleeper);
        } else if (strcmp(line, "wait\n") == 0) {
            start(in_epoll);
            start(in_semaphore);
            start(in_signal);
        } else if (strcmp(line, "park\n") == 0) {
            parked = 1;
            start(park);
            usleep(50000);
        } else if (strcmp(line, "signal\n") == 0) {
            pthread_kill(threads[started - 1], SIGUSR1);
            while (!handling)
                ;
        } else if (strcmp(line, "leave\n") == 0) {
            parked = 0;
        } else if (strcmp(line, "value\n") == 0) {
            printf("%ld\n", value());
            continue;
        } else {
            long bad = join();
            printf("%ld wrong, %ld interrupted\n", bad, waits);
            continue;
        }
        puts("done");
    }
    semctl(semaphore, 0, IPC_RMID);
    return 0;
}
