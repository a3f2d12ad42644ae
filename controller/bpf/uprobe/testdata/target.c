// SPDX-License-Identifier: Apache-2.0
/*
 * A program to probe. It reads lines "FUNCTION COUNT [ARGUMENT]" and answers
 * each with "done" after COUNT calls with ARGUMENT, or with 0, 1, 2, ... if
 * none is given.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kinds of first instruction that the kernel treats differently. */
#define FUNCTION(name, first)                                                                      \
    __asm__(".globl " #name "\n.type " #name ",@function\n.p2align 4\n" #name ":\n" first          \
            "\nlea 1(%rdi), %rax\nret\n.size " #name ", .-" #name);                                \
    long name(long, long, long, long, long, long)

FUNCTION(starts_with_nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00");
FUNCTION(starts_with_push, "push %rbp\npop %rbp");
FUNCTION(starts_with_pad, "endbr64\npush %rbp\npop %rbp");
FUNCTION(starts_with_mov, "mov %rdi, %rax");
FUNCTION(starts_with_segment, ".byte 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00");

static volatile long sink;
static jmp_buf place;

__attribute__((noinline)) long recursive(long depth) {
    if (depth > 0)
        sink += recursive(depth - 1);
    return depth;
}

/* Ends in a jump. */
__attribute__((noinline)) long jumps(long i) {
    sink += i;
    return starts_with_push(i, 0, 0, 0, 0, 0);
}

/* So does this one, to that one. */
__attribute__((noinline)) long wraps(long i) {
    sink += i;
    return jumps(i);
}

/* Is left where it has been called from, or further outside. */
__attribute__((noinline)) void leaves(long i) {
    sink += i;
    longjmp(place, 1);
}

__attribute__((noinline)) long sleeps(long microseconds) {
    return usleep((useconds_t)microseconds);
}

/* Says that it is there, and returns when it is told something. */
__attribute__((noinline)) long waits(void) {
    puts("waits");
    fflush(stdout);
    return getchar();
}

static void call(const char *name, long argument) {
    if (!strcmp(name, "nop5"))
        sink = starts_with_nop5(argument, 11, 12, 13, 14, 15);
    else if (!strcmp(name, "push"))
        sink = starts_with_push(argument, 11, 12, 13, 14, 15);
    else if (!strcmp(name, "pad"))
        sink = starts_with_pad(argument, 11, 12, 13, 14, 15);
    else if (!strcmp(name, "mov"))
        sink = starts_with_mov(argument, 11, 12, 13, 14, 15);
    else if (!strcmp(name, "segment"))
        sink = starts_with_segment(argument, 11, 12, 13, 14, 15);
    else if (!strcmp(name, "recursive"))
        sink = recursive(argument);
    else if (!strcmp(name, "wraps"))
        sink = wraps(argument);
    else if (!strcmp(name, "leaves") && !setjmp(place))
        leaves(argument);
    else if (!strcmp(name, "sleeps"))
        sink = sleeps(argument);
    else if (!strcmp(name, "waits"))
        sink = waits();
    else if (!strcmp(name, "getppid"))
        sink = getppid();
}

struct work {
    const char *name;
    long count, argument;
    int numbered;
};

static void *run(void *pointer) {
    struct work *work = pointer;

    for (long i = 0; i < work->count; i++)
        call(work->name, work->numbered ? i : work->argument);
    return NULL;
}

/* "threads:NAME" does the work in four threads at once, each of it all. */
static void run_threads(struct work *work) {
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run, work);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(void) {
    char line[256], name[64];

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        struct work work = {.name = name};
        int fields = sscanf(line, "%63s %ld %ld", name, &work.count, &work.argument);

        work.numbered = fields < 3;
        if (!strncmp(name, "threads:", 8)) {
            work.name = name + 8;
            run_threads(&work);
        } else {
            run(&work);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
