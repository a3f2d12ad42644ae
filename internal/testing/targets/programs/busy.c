// SPDX-License-Identifier: Apache-2.0
/* Threads that do nothing but one thing; counts what they did, and answers
 * "check" with whether all of it came out right. argv: what, threads, stack. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long wrong;
static unsigned long done[64];
static volatile sig_atomic_t signals;

#ifdef TAKE_ADDRESS
void *(*volatile taken_malloc)(size_t) = malloc;
void (*volatile taken_free)(void *) = free;
#endif

static void alloc(unsigned long i) {
    void *blocks[8];
    for (int b = 0; b < 8; b++) {
        blocks[b] = malloc(100 + (i * 37 + (unsigned long)b * 4099) % 70000);
        memset(blocks[b], b, 100);
    }
    for (int b = 0; b < 8; b++) {
        if (*(char *)blocks[b] != b)
            wrong++;
        free(blocks[b]);
    }
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void sorted(unsigned long i) {
    int numbers[512];
    for (int n = 0; n < 512; n++)
        numbers[n] = (int)((i + (unsigned long)n) * 2654435761u % 1000003);
    qsort(numbers, 512, sizeof(int), compare);
    for (int n = 1; n < 512; n++)
        if (numbers[n - 1] > numbers[n])
            wrong++;
}

static void computed(unsigned long i) {
    volatile double x = 1.0, y = (double)(i % 7 + 1);
    for (int n = 0; n < 1000; n++)
        x = x * y / y + 0.0;
    if (x != 1.0)
        wrong++;
}

static void printed(unsigned long i) {
    static FILE *null;
    if (null == NULL)
        null = fopen("/dev/null", "w");
    if (fprintf(null, "%lu %f %s\n", i, (double)i, "text") < 0)
        wrong++;
}

static void slept(unsigned long i) {
    struct timespec pause = {.tv_nsec = 20000000};
    (void)i;
    if (nanosleep(&pause, NULL) != 0 && signals == 0)
        wrong++; /* nobody sent a signal that the program could see */
}

static void *work(void *argument) {
    static const struct {
        const char *name;
        void (*step)(unsigned long);
    } kinds[] = {{"alloc", alloc},
                 {"qsort", sorted},
                 {"compute", computed},
                 {"printf", printed},
                 {"sleep", slept}};
    char **argv = argument;
    static int next;
    int own = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        if (strcmp(kinds[k].name, argv[1]) == 0)
            for (;; done[own]++)
                kinds[k].step(done[own]);
    return NULL;
}

static void count(int signal) {
    (void)signal;
    signals++;
}

int main(int argc, char **argv) {
    char line[64];
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    signal(SIGUSR1, count);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (argc > 3)
        pthread_attr_setstacksize(&attributes, (size_t)atoi(argv[3]));
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, &attributes, work, argv);
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        unsigned long before[64], moved = 0;
        for (int i = 0; i < threads; i++)
            before[i] = __atomic_load_n(&done[i], __ATOMIC_RELAXED);
        for (int round = 0; round < 5000 && moved < (unsigned long)threads; round++) {
            usleep(1000);
            moved = 0;
            for (int i = 0; i < threads; i++)
                moved += __atomic_load_n(&done[i], __ATOMIC_RELAXED) != before[i];
        }
        printf("moved %lu wrong %lu signals %d\n", moved, wrong, (int)signals);
        fflush(stdout);
    }
    return wrong == 0 ? 0 : 1;
}
