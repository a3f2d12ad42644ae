/* SPDX-License-Identifier: Apache-2.0 */
/* For each line with a number, locks and unlocks a mutex so many times. With "load" it
 * loads the library that its environment names, and has it do so from then on. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Also that of the library. */
void lock_often(long n) {
    for (long i = 0; i < n; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

#ifndef LIBRARY

int main(void) {
    char line[64];
    void (*lock)(long) = lock_often;

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        if (strcmp(line, "load\n") == 0) {
            void *library = dlopen(getenv("LATE"), RTLD_NOW);
            if (library != NULL)
                *(void **)&lock = dlsym(library, "lock_often");
        } else {
            lock(strtol(line, NULL, 10));
        }
        puts("done");
    }
    return 0;
}

#endif
