/* SPDX-License-Identifier: Apache-2.0 */
/* allocations THREADS PAIRS: each thread allocates blocks in two ways. */
#include <pthread.h>
#include <stdlib.h>

static long pairs;

static void *work(void *unused) {
    (void)unused;
    for (long i = 0; i < pairs; i++) {
        void *volatile one = aligned_alloc(64, 64);
        void *two = NULL;
        free(one);
        if (posix_memalign(&two, 64, 64) != 0)
            abort();
        free(two);
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
