/* SPDX-License-Identifier: Apache-2.0 */
/* The first thread ends; the second one stays, after it has made a child that
 * shows that the first one is gone. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t first;

static void *stay(void *unused) {
    pthread_join(first, NULL);
    if (system("exec sleep 0") != 0)
        _exit(1);
    for (;;)
        pause();
    return unused;
}

int main(void) {
    pthread_t second;
    first = pthread_self();
    if (pthread_create(&second, NULL, stay, NULL))
        return 1;
    pthread_exit(NULL);
}
