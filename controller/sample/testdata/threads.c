/* SPDX-License-Identifier: Apache-2.0 */
/* Does what its input says, and answers each line when it is done:
 * threads N: have N threads; burn: use 100 ms of CPU time, over all threads;
 * fault: touch 2,000 new small pages; nap: sleep twenty times. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 4096

static pthread_t threads[MAX_THREADS];
static int count = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int wanted = 1, burning, done;
static double share;
/* What burning was when each thread was made: it may start to run only after
 * the next burn has begun, and must take part. */
static int seen[MAX_THREADS];

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void burn(double seconds) {
    for (double end = cpu() + seconds; cpu() < end;)
        ;
}

static void *work(void *number) {
    int last = seen[(long)number];
    pthread_mutex_lock(&lock);
    while ((long)number < wanted) {
        if (burning != last) {
            last = burning;
            pthread_mutex_unlock(&lock);
            burn(share);
            pthread_mutex_lock(&lock);
            done++;
            pthread_cond_broadcast(&changed);
            continue;
        }
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void resize(int n) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_mutex_lock(&lock);
    wanted = n;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (; count > n; count--)
        pthread_join(threads[count - 1], NULL);
    for (; count < n; count++) {
        seen[count] = burning; /* only this thread changes it */
        if (pthread_create(&threads[count], &small, work, (void *)(long)count))
            exit(1);
    }
}

static void burn_together(void) {
    share = 0.1 / count;
    pthread_mutex_lock(&lock);
    done = 0;
    burning++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    burn(share);
    pthread_mutex_lock(&lock);
    while (done < count - 1)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void fault(void) {
    const size_t size = 2000 * 4096;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        exit(1);
    madvise(pages, size, MADV_NOHUGEPAGE); /* an error: the kernel knows no others */
    memset(pages, 1, size);
}

int main(void) {
    char line[100];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int n;
        if (sscanf(line, "threads %d", &n) == 1 && n >= 1 && n <= MAX_THREADS)
            resize(n);
        else if (strcmp(line, "burn\n") == 0)
            burn_together();
        else if (strcmp(line, "fault\n") == 0)
            fault();
        else if (strcmp(line, "nap\n") == 0)
            for (n = 0; n < 20; n++)
                usleep(1000);
        puts("done");
        fflush(stdout);
    }
    resize(1);
}
