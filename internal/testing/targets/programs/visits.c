/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that call one function all the time, with a timer's signals between,
 * and check what comes out. argv: threads. Answers:
 *   check      what went wrong so far, and whether all threads go on
 *   ignore     SIGTRAP is ignored from now on
 *   use N      takes N debug registers of the first thread and of a worker */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

static volatile unsigned long wrong, rounds[64], alarms;
static volatile pid_t worker;
volatile unsigned long steps; /* even outside of once() */

__attribute__((noinline)) long visited(long a, long b) {
    __asm__ volatile("" ::: "memory");
    return 3 * a - b;
}

__attribute__((noinline)) void never(void) { __asm__ volatile(""); }

__attribute__((noinline)) void once(int depth) {
    if (depth > 0)
        once(depth - 1);
    else
        steps++;
    __asm__ volatile("" ::: "memory");
}

static void *work(void *argument) {
    unsigned long i = (unsigned long)argument;
    worker = (pid_t)syscall(SYS_gettid);
    for (long n = 0;; n++) {
        if (visited(n, (long)i) != 3 * n - (long)i)
            wrong++;
        if (i == 0) {
            once(3);
            steps++;
        }
        rounds[i]++;
        if (n % 64 == 0)
            usleep(100);
    }
    return NULL;
}

static void count(int signal) {
    (void)signal;
    alarms++;
}

static void take(int n) {
    static long watched[4];
    for (int i = 0; i < n; i++) {
        struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr)};
        attr.bp_type = HW_BREAKPOINT_W;
        attr.bp_addr = (unsigned long)&watched[i];
        attr.bp_len = sizeof(long);
        attr.exclude_kernel = 1;
        for (int thread = 0; thread < 2; thread++) { /* the first, and the one that works */
            pid_t tid = thread == 0 ? getpid() : worker;
            if (syscall(SYS_perf_event_open, &attr, tid, -1, -1, 0) < 0)
                perror("perf_event_open");
        }
    }
}

static void check(int threads) {
    unsigned long before[64], seen = alarms;
    for (int i = 0; i < threads; i++)
        before[i] = rounds[i];
    for (int i = 0; i < threads; i++)
        while (rounds[i] == before[i])
            usleep(100);
    while (alarms == seen)
        usleep(100);
    printf("wrong %lu, all go on\n", wrong);
}

int main(int argc, char **argv) {
    struct itimerval often = {{0, 700}, {0, 700}};
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    char line[64];
    signal(SIGALRM, count);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, (void *)i);
    }
    while (worker == 0)
        usleep(100);
    setitimer(ITIMER_REAL, &often, NULL);
    puts("ready");
    for (;;) {
        if (fgets(line, sizeof(line), stdin) == NULL) {
            if (feof(stdin))
                return 0;
            clearerr(stdin);
            continue;
        }
        if (strncmp(line, "check", 5) == 0) {
            check(threads);
            continue;
        }
        if (strncmp(line, "ignore", 6) == 0)
            signal(SIGTRAP, SIG_IGN);
        if (strncmp(line, "use", 3) == 0)
            take(atoi(line + 4));
        puts("done");
    }
}
