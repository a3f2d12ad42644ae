/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control program: two threads that take work from one queue under a mutex, a
 * few microseconds of work per item, and small allocations.
 *
 *     control_threads THOUSANDS-OF-ITEMS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long left;
static double result;

static double item(long n) {
    double *small = malloc(64), x = 1.0 / (double)(n + 2);
    int i;

    if (small == NULL)
        abort();
    for (i = 0; i < 1000; i++)
        x = 3.7 * x * (1 - x);
    *small = x;
    x = *(volatile double *)small;
    free(small);
    return x;
}

static void *work(void *unused) {
    double sum = 0;
    long n;

    do {
        pthread_mutex_lock(&lock);
        n = left > 0 ? left-- : 0;
        pthread_mutex_unlock(&lock);
        sum += item(n);
    } while (n > 0);
    pthread_mutex_lock(&lock);
    result += sum;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread[2];
    int i;

    left = (argc > 1 ? atol(argv[1]) : 10) * 1000;
    for (i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, work, NULL) != 0)
            return 1;
    for (i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    printf("%.17g\n", result);
    return 0;
}
