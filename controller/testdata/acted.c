/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on which tuning actions are tried, called directly. "call" answers
 * what each returns; "hammer" calls a_target from all threads until "halt",
 * which answers how often and how many results were neither of a_target, nor of
 * a_other, nor 42; a_whole as well. After "fork" a child answers until "leave". */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define FUNCTION __attribute__((noinline, noclone, noipa))

static volatile int halt;
static volatile long seven = 7;
static void *volatile allocated;
static volatile long logged, logged_errno;
static volatile double logged_real;
static char logged_text[32];

FUNCTION long a_target(long a, int b) { return a * 2 + b; }
FUNCTION long a_other(long a, int b) { return a * 3 + b; }
FUNCTION double a_real(double x, float y) { return x * 2 + (double)y; }
FUNCTION long a_callee(void) { return seven; }
FUNCTION long a_caller_one(void) { return a_callee() * 10; }
FUNCTION long a_caller_two(void) { return a_callee() * 100; }

FUNCTION long a_integers(long a, long b, long c, long d, long e, long f) {
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}

FUNCTION long a_narrow(int a, short b, unsigned char c, short d) {
    return a + 10 * b + 100 * c + d;
}

FUNCTION double a_reals(double a, double b, double c, double d, double e, double f, double g,
                        double h) {
    return a + 10 * b + 100 * c + 1000 * d + 1e4 * e + 1e5 * f + 1e6 * g + 1e7 * h;
}

/* All registers that parameters are in. */
FUNCTION double a_many(long a, long b, long c, long d, long e, long f, double p, double q, double r,
                       double s, double t, double u, double v, double w) {
    return (double)(a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6) + p + q * 2 + r * 3 + s * 4 + t * 5 +
           u * 6 + v * 7 + w * 8;
}

/* Is called where another function begins or ends, and changes whatever a
 * function may. */
FUNCTION void a_log(long what, const char *text, double real) {
    logged += what;
    logged_real = real;
    snprintf(logged_text, sizeof(logged_text), "%s %.1f", text, real * 2);
    errno = EBADF;
    __asm__ volatile("xor %%edi, %%edi; xor %%esi, %%esi; xor %%edx, %%edx; xor %%ecx, %%ecx;"
                     "xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d;"
                     "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2;"
                     "pxor %%xmm3, %%xmm3; pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5;"
                     "pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7" ::
                         : "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                           "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc");
}

#ifdef __x86_64__
/* Begins with the loop that it is: each turn comes by its entry. */
__asm__(".text; .globl a_circle; .type a_circle, @function; a_circle: subq $1, %rdi;"
        "movq %rdi, %rax; jnz a_circle; ret; .size a_circle, .-a_circle");
#endif

#ifdef __x86_64__
/* One byte would make it jump ten bytes on, into what is here: five are needed,
 * with two instructions in them. */
__asm__(".text; .globl a_whole; .type a_whole, @function; a_whole: nop; addl $0, %eax;"
        "leaq 1(%rdi), %rax; ret; .size a_whole, .-a_whole");
long a_whole(long a);
#else
FUNCTION long a_whole(long a) { return a + 1; }
#endif

static void call(void) {
    errno = ENOENT;
    long target = a_target(10, 1);
    int after = errno;
    printf("target %ld real %g one %ld two %ld integers %ld narrow %ld reals %g many %g ", target,
           a_real(1.5, 2), a_caller_one(), a_caller_two(), a_integers(1, 2, 3, 4, 5, 6),
           a_narrow(-1, -2, 3, 4), a_reals(1, 2, 3, 4, 5, 6, 7, 8),
           a_many(1, 2, 3, 4, 5, 6, 1.5, 2, 3, 4, 5, 6, 7, 8));
    printf("logged %ld %s errno %d\n", logged, logged_text, after == ENOENT);
}

static void *hammer(void *result) {
    long *counts = result;
    while (!halt) {
        long i = counts[0]++, got = a_target(i, 5);
        counts[1] += got != i * 2 + 5 && got != i * 3 + 5 && got != 42;
        got = a_whole(i);
        counts[1] += got != i + 1 && got != 42;
    }
    return NULL;
}

static void ask(pthread_t *threads, long counts[][2], const char *line) {
    long calls = 0, wrong = 0;
    if (strcmp(line, "hammer\n") == 0) {
        halt = 0;
        memset(counts, 0, sizeof(long[THREADS][2]));
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, hammer, counts[i]);
        puts("hammering");
    } else if (strcmp(line, "halt\n") == 0) {
        halt = 1;
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            calls += counts[i][0];
            wrong += counts[i][1];
        }
        printf("%ld %ld\n", calls, wrong);
    } else if (strcmp(line, "call\n") == 0) {
        call();
    } else if (strcmp(line, "fork\n") == 0) {
        pid_t child = fork();
        if (child == 0)
            printf("%d\n", (int)getpid());
        else
            waitpid(child, NULL, 0);
    } else if (strcmp(line, "leave\n") == 0) {
        puts("left");
        _exit(0);
    } else { /* comes by hooks of DMLib */
        allocated = malloc(1);
        free(allocated);
        puts("idle");
    }
}

int main(void) {
    char line[64];
    pthread_t threads[THREADS];
    static long counts[THREADS][2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* shared with the child */
    puts("ready");
    while (fgets(line, sizeof(line), stdin) != NULL)
        ask(threads, counts, line);
    return 0;
}
