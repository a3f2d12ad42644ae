/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an allocator of its own, as one that jemalloc, tcmalloc or mimalloc is
 * linked into: `target-allocator PAIRS`. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void __libc_free(void *address);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *address, size_t size);

void *malloc(size_t size) { return __libc_malloc(size); }
void free(void *address) { __libc_free(address); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *address, size_t size) { return __libc_realloc(address, size); }

int main(int argc, char **argv) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (long left = argc > 1 ? atol(argv[1]) : 0; left > 0; left--) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
