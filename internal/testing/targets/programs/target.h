/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs for the hard cases have in common: threads that do steps
 * for ever and check what comes of them, something to measure and to change,
 * and a main thread that answers lines:
 *   check         "right" if all has gone as it should and the threads go on
 *   value N       what target_value(N) returns, 3 * N + 1 if nobody changed it
 *   variable      what target_variable holds
 *   time          "now", or what time(NULL) returns if target_time replaces it
 *   files         how many files it may open
 *   load PATH     loads a library and keeps it; answers as check does
 *   exec          becomes the same program again
 *   end           says "end" and ends with status 7, or 1 if something was wrong
 */
#ifndef ATTUNE_TARGET_H
#define ATTUNE_TARGET_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TARGET_STATUS 7

static volatile unsigned long target_wrong, target_steps;
static int target_stands_still; /* the threads are not expected to go on */

/* Its arguments when it becomes the same program again; NULL: none. */
static char **target_again;

/* What it does when it has said that it is ready, before it reads lines. */
static void (*target_begin)(void);

/* Beside what it is told, a program may look whether it is right itself. */
static void (*target_look)(void);

volatile long target_variable = 5;

/* Begins with five one-byte no-operations, so that the jump of an entry patch
 * leads below the program, where nothing is, wherever the kernel puts it. */
__attribute__((noinline, aligned(4096), patchable_function_entry(5))) long target_value(long n) {
    __asm__ volatile("" ::: "memory");
    return 3 * n + 1;
}

/* time(2) is chosen when it is loaded (IFUNC): only the slots that lead to it
 * can be changed. */
#define TARGET_TIME 42
__attribute__((noinline)) time_t target_time(time_t *unused) {
    (void)unused;
    return TARGET_TIME;
}

static inline void target_tell_time(void) { puts(time(NULL) == TARGET_TIME ? "42" : "now"); }

static inline void target_tell_files(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    printf("%lu\n", (unsigned long)files.rlim_cur);
}

/* Nobody ever comes here. */
__attribute__((noinline)) void target_never(void) { __asm__ volatile(""); }

static inline void is_wrong(void) { __atomic_add_fetch(&target_wrong, 1, __ATOMIC_RELAXED); }

static inline void *forever(void (*once)(void)) {
    for (;;) {
        once();
        target_value((long)__atomic_add_fetch(&target_steps, 1, __ATOMIC_RELAXED));
    }
    return NULL;
}

static inline void compute(void) {
    volatile double x = 1.0;
    for (int n = 1; n < 2000; n++)
        x = x * n / n;
    if (x != 1.0)
        is_wrong();
}

static inline void *computing(void *unused) {
    (void)unused;
    return forever(compute);
}

static inline void nap(void) { usleep(20000); }

static inline void *napping(void *unused) {
    (void)unused;
    return forever(nap);
}

/* Starts a thread with a stack of so many bytes; 0: the usual ones. */
static inline pthread_t begin(void *(*work)(void *), size_t stack) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack != 0)
        pthread_attr_setstacksize(&attributes, stack);
    if (pthread_create(&thread, &attributes, work, NULL) != 0)
        is_wrong();
    return thread;
}

static inline void target_check(void) {
    unsigned long before = target_steps;
    if (target_look != NULL)
        target_look();
    for (int i = 0; i < 20000 && target_steps == before && !target_stands_still; i++)
        usleep(1000);
    if (target_steps == before && !target_stands_still)
        is_wrong();
    if (target_wrong == 0)
        puts("right");
    else
        printf("%lu wrong\n", target_wrong);
}

static inline void target_answer(char *line) {
    void *volatile block = malloc(100); /* with each line the thread comes by a hook */
    free(block);
    if (strncmp(line, "value ", 6) == 0)
        printf("%ld\n", target_value(atol(line + 6)));
    else if (strcmp(line, "variable") == 0)
        printf("%ld\n", target_variable);
    else if (strcmp(line, "time") == 0)
        target_tell_time();
    else if (strcmp(line, "files") == 0)
        target_tell_files();
    else if (strncmp(line, "load ", 5) == 0 && dlopen(line + 5, RTLD_NOW) == NULL)
        puts(dlerror());
    else
        target_check();
    fflush(stdout);
}

/* The rest of main, once the threads have been started. */
static inline int target_serve(char **argv) {
    char line[4096];
    puts("ready");
    fflush(stdout);
    if (target_begin != NULL)
        target_begin();
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "exec") == 0)
            execv("/proc/self/exe",
                  target_again != NULL ? target_again : (char *[]){argv[0], NULL});
        if (strcmp(line, "end") == 0)
            break;
        target_answer(line);
    }
    puts("end");
    fflush(stdout);
    _exit(target_wrong == 0 ? TARGET_STATUS : 1); /* threads may still be at work */
}

#endif
