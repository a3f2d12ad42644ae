/* SPDX-License-Identifier: Apache-2.0 */
/* locks THREADS PAIRS: each thread locks and unlocks a mutex of its own. */
#include <pthread.h>
#include <stdlib.h>

static long pairs;

static void *work(void *unused) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    (void)unused;
    for (long i = 0; i < pairs; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[64];
    int count = argc > 2 ? atoi(argv[1]) : 1;
    pairs = argc > 2 ? atol(argv[2]) : 1;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
