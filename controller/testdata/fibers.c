/* SPDX-License-Identifier: Apache-2.0 */
/* Two fibers with a stack each, which take turns in the middle of passed: for each line as
 * many rounds as it says, which is answered. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t outside, fiber[2];
static char stacks[2][64 << 10]; /* the second one begins at higher addresses */
static int running, finished;
static long rounds;
static volatile long sink;

static void yield(void) {
    int from = running;
    if (finished)
        return;
    running = !running;
    swapcontext(&fiber[from], &fiber[running]);
}

__attribute__((noinline)) long step(long i) {
    sink += i;
    return sink;
}

/* It ends in a jump: only the kernel sees when it returns. */
__attribute__((noinline)) long passed(long i) {
    yield();
    return step(i);
}

static void work(void) {
    for (long i = 0; i < rounds; i++)
        sink += passed(i);
    finished++;
}

int main(void) {
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        rounds = strtol(line, NULL, 10);
        for (int i = 0; i < 2; i++) {
            getcontext(&fiber[i]);
            fiber[i].uc_stack.ss_sp = stacks[i];
            fiber[i].uc_stack.ss_size = sizeof(stacks[i]);
            fiber[i].uc_link = &outside;
            makecontext(&fiber[i], work, 0);
        }
        finished = 0;
        for (running = 0; running < 2; running++)
            swapcontext(&outside, &fiber[running]); /* until it is through */
        printf("%ld passed\n", rounds);
    }
    return 0;
}
