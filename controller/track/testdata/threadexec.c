/* SPDX-License-Identifier: Apache-2.0 */
/* The second thread of a process executes another program. */
#include <pthread.h>
#include <unistd.h>

static void *become(void *unused) {
    execlp("sleep", "sleep", "606", (char *)NULL);
    _exit(1);
    return unused;
}

int main(void) {
    pthread_t second;
    if (pthread_create(&second, NULL, become, NULL))
        return 1;
    for (;;)
        pause();
}
