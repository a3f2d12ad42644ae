/* SPDX-License-Identifier: Apache-2.0 */
/* Works in two threads that check each other's results, a part of the time, for
 * tests have several side by side, and says on request what its knob is. At the end
 * of its input it says whether every result was right, and exits with 3. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2, STATUS = 3, AT_ONCE = 64, PAUSE_US = 5000 };

volatile int32_t knob = 7;
static atomic_bool ending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t rounds, wrong;

__attribute__((noinline)) uint64_t work(uint64_t seed) {
    uint64_t *block = malloc(64 * sizeof *block);
    uint64_t sum = 0;

    for (int i = 0; i < 64; i++)
        block[i] = seed + (uint64_t)i;
    for (int i = 0; i < 64; i++)
        sum += block[i];
    free(block);
    return sum;
}

static void *worker(void *unused) {
    for (uint64_t seed = 0; !ending; seed++) {
        uint64_t got = work(seed);

        pthread_mutex_lock(&lock);
        rounds++;
        wrong += got != 64 * seed + 2016;
        pthread_mutex_unlock(&lock);
        if (seed % AT_ONCE == 0)
            usleep(PAUSE_US);
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    puts("ready");
    while (fgets(line, sizeof line, stdin))
        printf("%d\n", knob);
    ending = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%s, %llu wrong\n", rounds > 0 ? "worked" : "idle", (unsigned long long)wrong);
    return STATUS;
}
