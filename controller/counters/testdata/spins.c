/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a thread that computes, at one line that it reads, and has it end at the next. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int computes;

static void *compute(void *arg) {
    while (atomic_load_explicit(&computes, memory_order_relaxed))
        ;
    return arg;
}

int main(void) {
    pthread_t thread;
    puts("ready");
    fflush(stdout);
    for (int c; (c = getchar()) != EOF;)
        if (c == '\n' && !atomic_fetch_xor(&computes, 1) &&
            pthread_create(&thread, NULL, compute, NULL) == 0)
            pthread_detach(thread);
    return 0;
}
