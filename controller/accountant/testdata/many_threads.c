/* SPDX-License-Identifier: Apache-2.0 */
/* Ends with 64 threads that do nothing. */
#include <pthread.h>
#include <unistd.h>

static void *idle(void *unused) {
    pause();
    return unused;
}

int main(void) {
    pthread_t thread;
    int i;

    for (i = 0; i < 64; i++)
        if (pthread_create(&thread, NULL, idle, NULL) != 0)
            return 1;
    return 0;
}
