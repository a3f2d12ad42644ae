/* SPDX-License-Identifier: Apache-2.0 */
/* The first thread ends; the second one has a child then, and computes for 0.3 s. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_t first;

static void *go_on(void *unused) {
    pid_t child;

    pthread_join(first, NULL);
    usleep(50000); /* it is told that the thread has ended */
    if ((child = fork()) == 0)
        _exit(0);
    if (child < 0 || waitpid(child, NULL, 0) != child)
        _exit(1);
    while ((double)clock() / CLOCKS_PER_SEC < 0.3)
        ;
    exit(0);
    return unused;
}

int main(void) {
    pthread_t second;

    first = pthread_self();
    if (pthread_create(&second, NULL, go_on, NULL) != 0)
        return 1;
    pthread_exit(NULL);
}
