/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose calls end elsewhere than at a return of their own. For each line
 * with a number, calls each so many times, and answers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
#define MICROSECONDS 2000

volatile int sink;
static jmp_buf place;

/* Sleeps in a function to which it jumps. */
FUNCTION int t_jumps(long i);
FUNCTION int t_jumps(long i) {
    sink += (int)i;
    return usleep(MICROSECONDS);
}

/* Jumps for one call in two. */
FUNCTION int t_sometimes(long i);
FUNCTION int t_sometimes(long i) {
    sink += (int)i;
    if (i % 2 != 0)
        return usleep(MICROSECONDS);
    sink += usleep(MICROSECONDS);
    return sink;
}

/* Sleeps itself. */
FUNCTION int t_returns(long i);
FUNCTION int t_returns(long i) {
    sink += (int)i;
    sink += usleep(MICROSECONDS);
    return sink;
}

/* Is left after half of its calls. */
FUNCTION int t_left(long i);
FUNCTION int t_left(long i) {
    sink += usleep(MICROSECONDS);
    if (i % 2 != 0)
        longjmp(place, 1);
    return sink;
}

/* Ends the thread in half of its calls. */
FUNCTION int t_ends(long i);
FUNCTION int t_ends(long i) {
    sink += usleep(MICROSECONDS);
    if (i % 2 != 0)
        pthread_exit(NULL);
    return sink;
}

/* Its entry is the head of a loop, whose last turn takes no time. */
__asm__(".text\n .balign 16\n .globl t_loops\n .type t_loops, @function\n"
        "t_loops: sub $1, %rdi\n nop\n push %rdi\n mov %rdi, %rax\n"
        "imul $1000000, %rax\n 1: sub $1, %rax\n jns 1b\n pop %rdi\n"
        "test %rdi, %rdi\n jne t_loops\n mov $0, %eax\n ret\n"
        ".size t_loops, . - t_loops\n");
int t_loops(long turns);

static void *thread(void *i) {
    t_ends((long)i);
    return NULL;
}

static void call(long i) {
    pthread_t other;
    t_jumps(i);
    t_sometimes(i);
    t_returns(i);
    if (setjmp(place) == 0)
        t_left(i);
    if (pthread_create(&other, NULL, thread, (void *)i) == 0)
        pthread_join(other, NULL);
    t_loops(3);
}

int main(void) {
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin) != NULL) {
        long n = strtol(line, NULL, 10);
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        for (long i = 0; i < n; i++)
            call(i);
        puts("done");
    }
    return 0;
}
