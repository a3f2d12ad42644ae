/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that allocate and give back, built with a sanitizer. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *work(void *argument) {
    uintptr_t sum = (uintptr_t)argument;
    for (unsigned i = 0; i < 200000; i++) {
        size_t size = 1 + (i * 2654435761u + sum) % 3000;
        char *block = malloc(size);
        memset(block, (int)i, size);
        block = realloc(block, 2 * size);
        sum += (unsigned char)block[size / 2];
        free(block);
        if (i % 500 == 0)
            usleep(2000);
    }
    return (void *)sum;
}

int main(void) {
    pthread_t threads[4];
    uintptr_t sum = 0;
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (uintptr_t)result;
    }
    printf("%lu\n", (unsigned long)sum);
    return 5;
}
