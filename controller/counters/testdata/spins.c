/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a thread that computes for a while, for each line that it reads. */
#include <pthread.h>
#include <stdio.h>

static volatile unsigned long work;

static void *compute(void *arg) {
    for (unsigned i = 0; i < 200000000; i++)
        work += i;
    return arg;
}

int main(void) {
    pthread_t thread;
    puts("ready");
    fflush(stdout);
    for (int c; (c = getchar()) != EOF;)
        if (c == '\n' && pthread_create(&thread, NULL, compute, NULL) == 0)
            pthread_detach(thread);
    return 0;
}
