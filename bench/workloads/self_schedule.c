/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round of items that workers, which are threads, take in pieces: in each batch
 * every worker gets an equal share of FACTOR times what is left. One worker needs
 * four times as long for an item as the others, as one on a slower node would.
 *
 *     self_schedule SECONDS FACTOR [WORKERS]
 */
#include "workload.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { MOST = 64, ITEMS = 256, STEPS = 20000, SLOWER = 4 };

/* The knob. */
volatile double factor = 1;

static int workers = 2;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin, end;
static int left, piece, due, over;

/* Takes a piece of what is left; 0: nothing is. */
__attribute__((noinline)) int take_piece(void) {
    int n;

    pthread_mutex_lock(&lock);
    if (due == 0) {
        piece = (int)ceil(left * factor / workers);
        piece = piece < 1 ? 1 : piece;
        due = workers;
    }
    due--;
    n = piece < left ? piece : left;
    left -= n;
    pthread_mutex_unlock(&lock);
    return n;
}

__attribute__((noinline)) double work_item(int item, int times) {
    double x = item;
    int i;

    for (i = 0; i < STEPS * times; i++)
        x = x * 0.999999 + 1e-6;
    return x;
}

static void *worker(void *argument) {
    int times = argument == NULL ? SLOWER : 1, n;
    volatile double sum = 0;

    for (;;) {
        pthread_barrier_wait(&begin);
        if (over)
            return NULL;
        while ((n = take_piece()) > 0)
            while (n-- > 0)
                sum = sum + work_item(n, times);
        pthread_barrier_wait(&end);
    }
}

__attribute__((noinline)) void play_round(void) {
    left = ITEMS;
    due = 0;
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    pthread_t threads[MOST];
    struct progress p;
    uint64_t rounds = 0;
    long w;

    factor = argc > 2 ? atof(argv[2]) : 1;
    workers = argc > 3 ? atoi(argv[3]) : 2;
    if (workers < 1 || workers > MOST)
        return 2;
    pthread_barrier_init(&begin, NULL, (unsigned)workers + 1);
    pthread_barrier_init(&end, NULL, (unsigned)workers + 1);
    for (w = 0; w < workers; w++)
        if (pthread_create(&threads[w], NULL, worker, (void *)w) != 0)
            return 1;
    p = progress_begin();
    do {
        play_round();
        rounds++;
    } while (progress_step(&p, rounds) < seconds);
    progress_end(&p, rounds);
    over = 1;
    pthread_barrier_wait(&begin);
    for (w = 0; w < workers; w++)
        pthread_join(threads[w], NULL);
    return 0;
}
