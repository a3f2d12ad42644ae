/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with entries of all kinds, called directly. A line with a number
 * calls each so many times in every thread; "hammer" calls them until "halt".
 * Each answer says how many results were wrong. From "share" to "unshare" a child
 * runs in the memory of all, as one does between vfork and exec. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define FUNCTION __attribute__((noinline, noclone))

struct large {
    long words[12];
};

static volatile long base = 40;
static volatile int halt;
static __thread jmp_buf place;

/* Too short for a jump. */
FUNCTION static long p_short(long a) { return a; }

FUNCTION static long p_static(long a, long b) { return a * 3 + b; }

/* Its first instruction refers to itself. */
FUNCTION static long p_relative(void) { return base; }

FUNCTION static long p_recursive(long n) { return n <= 0 ? base : 1 + p_recursive(n - 1); }

FUNCTION static double p_floats(double a, float b, long n, double c) {
    return a + b + (double)n + c;
}

FUNCTION static double p_varargs(int n, ...) {
    va_list list;
    double sum = 0;
    va_start(list, n);
    for (int i = 0; i < n; i++)
        sum += i % 2 ? va_arg(list, double) : (double)va_arg(list, long);
    va_end(list);
    return sum;
}

FUNCTION static struct large p_struct(long a) {
    struct large result;
    for (int i = 0; i < 12; i++)
        result.words[i] = a + i;
    return result;
}

FUNCTION static long p_seventh(long a, long b, long c, long d, long e, long f, long g) {
    return a + b + c + d + e + f * 10 + g * 100;
}

FUNCTION static void p_jumps(int value) { longjmp(place, value); }

FUNCTION static long p_setjmp(int value) {
    int got = setjmp(place);
    if (got == 0)
        p_jumps(value);
    return got;
}

/* Loops back to its entry where the compiler makes it do so. */
FUNCTION static long p_loop(long n, long sum) {
    for (;; n--) {
        if (n == 0)
            return sum;
        sum += n;
    }
}

static __thread volatile long handled;

FUNCTION static void p_handler(int signal) { handled += signal; }

static long work(long i) {
    long bad = 0;
    long before = handled;
    struct large s = p_struct(i);
    bad += p_short(i) != i;
    bad += p_static(i, 5) != i * 3 + 5;
    bad += p_relative() != 40;
    bad += p_recursive(3) != 43;
    bad += p_floats(1.5, 2.5f, i, 4.0) != 8.0 + (double)i;
    bad += p_varargs(4, 1L, 2.0, 3L, 4.0) != 10.0;
    bad += s.words[0] != i || s.words[11] != i + 11;
    bad += p_seventh(1, 2, 3, 4, 5, 6, 7) != 775;
    bad += p_setjmp(9) != 9;
    bad += p_loop(4, 0) != 10;
    raise(SIGUSR1);
    bad += handled != before + SIGUSR1;
    void *volatile block = malloc((size_t)(100 + i % 7)); /* a safe point */
    free(block);
    return bad;
}

static void *run(void *argument) {
    long n = (long)argument, bad = 0;
    for (long i = 0; n < 0 ? !halt : i < n; i++)
        bad += work(i);
    return (void *)bad;
}

static pthread_t threads[THREADS];

static void start(long n) {
    halt = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)n) != 0)
            exit(3);
}

static long join(void) {
    long bad = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        bad += (long)result;
    }
    return bad;
}

static int child[2];

static void *share(void *argument) {
    char byte;
    if (vfork() == 0) {
        (void)!read(child[0], &byte, 1);
        _exit(0);
    }
    return argument;
}

/* Says whether a line was understood. */
static int sharing(const char *line) {
    static pthread_t parent;
    if (strcmp(line, "share\n") == 0)
        return pipe(child) == 0 && pthread_create(&parent, NULL, share, NULL) == 0;
    return strcmp(line, "unshare\n") == 0 && write(child[1], "", 1) == 1 &&
           pthread_join(parent, NULL) == 0;
}

int main(void) {
    char line[64];

    signal(SIGUSR1, p_handler);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        if (strcmp(line, "hammer\n") == 0) {
            start(-1);
            puts("hammering");
            continue;
        }
        if (sharing(line)) {
            puts("done");
            continue;
        }
        halt = 1;
        if (strcmp(line, "halt\n") != 0)
            start(strtol(line, NULL, 10));
        printf("%ld wrong\n", join());
    }
    return 0;
}
