/* SPDX-License-Identifier: Apache-2.0 */
/* A program to change from outside: two threads with a variable each, two
 * static variables of one name (the other in tuned_other.c), functions to call.
 * Answers a line with what it asks for. After "fork" a child answers until "leave". */
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int other_counter(void);

static volatile int counter = 1;
static __thread volatile int own = 10;
volatile double ratio = 1.5;
extern const int fixed;
const int fixed = 3;
char last[64] = "nothing";
static int second, second_own;
static unsigned rounds; /* of the second thread */

__attribute__((noinline)) double mixed(int a, double b, const char *text, double c, long d) {
    snprintf(last, sizeof(last), "%d %g %s %g %ld", a, b, text, c, d);
    return a + b * c;
}

__attribute__((noinline)) int spoil(char *text) {
    text[0] = '!'; /* its own copy */
    snprintf(last, sizeof(last), "%s", text);
    return (int)strlen(text);
}

__attribute__((noinline)) int thread_id(void) { return (int)syscall(SYS_gettid); }

static volatile int seen;

/* Begins with five one-byte no-operations, so that the jump of an entry patch
 * leads 0x6f6f6f6b bytes back: below the program, where nothing is, wherever the
 * kernel puts it. Each has a page of its own, and so has its landing: what one
 * command maps is taken for the next. */
#define PATCHABLE __attribute__((noinline, aligned(4096), patchable_function_entry(5)))

PATCHABLE int plain(int n) { return n * counter; }
__attribute__((noinline)) int twice(int n) { return 2 * n; }
PATCHABLE double half(double x) { return x / 2; }
__attribute__((noinline)) int through(int n) { return plain(n) + 1000; }
__attribute__((noinline)) void notice(int n) { seen += n; }
__attribute__((noinline)) long frozen(long *unused) {
    (void)unused;
    return 4711;
}

static void *other_thread(void *unused) {
    __atomic_store_n(&second, thread_id(), __ATOMIC_RELEASE);
    for (;;) {
        __atomic_store_n(&second_own, own, __ATOMIC_RELAXED);
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELEASE);
        usleep(1000);
    }
    return unused;
}

/* Waits until the second thread has looked at its own copy since now. */
static void wait_round(void) {
    unsigned now = __atomic_load_n(&rounds, __ATOMIC_ACQUIRE);
    while (__atomic_load_n(&rounds, __ATOMIC_ACQUIRE) - now < 2)
        usleep(1000);
}

/* The child says its number. */
static void fork_child(void) {
    pid_t child = fork();
    if (child == 0)
        printf("%d\n", (int)getpid());
    else
        waitpid(child, NULL, 0);
}

static void answer(const char *line) {
    if (strcmp(line, "fork") == 0)
        fork_child();
    else if (strcmp(line, "leave") == 0) {
        puts("left");
        fflush(stdout);
        _exit(0);
    } else if (strncmp(line, "count ", 6) == 0)
        printf("%d\n", counter = atoi(line + 6));
    else if (strcmp(line, "counter") == 0)
        printf("%d %d\n", counter, other_counter());
    else if (strcmp(line, "own") == 0) {
        wait_round();
        printf("%d %d\n", own, __atomic_load_n(&second_own, __ATOMIC_RELAXED));
    } else if (strcmp(line, "second") == 0)
        printf("%d\n", second);
    else if (strcmp(line, "functions") == 0)
        printf("%d %d %g\n", plain(5), through(5), half(5));
    else if (strcmp(line, "seen") == 0)
        printf("%d\n", seen);
    else if (strcmp(line, "time") == 0)
        printf("%ld\n", (long)time(NULL));
    else if (strcmp(line, "ratio") == 0)
        printf("%g\n", ratio);
    else if (strcmp(line, "buffer") == 0)
        printf("%zu\n", __fbufsize(stdout));
    else
        printf("%s\n", last);
    fflush(stdout);
}

int main(void) {
    char line[64], text[] = "nothing";
    pthread_t thread;
    own = 10;
    pthread_create(&thread, NULL, other_thread, NULL);
    while (__atomic_load_n(&second, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    notice(0);
    if (twice(1) + frozen(NULL) == 0 || mixed(fixed, ratio, "start", 1, 2) == 0 || spoil(text) == 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        answer(line);
    }
    return 0;
}
