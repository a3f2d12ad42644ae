/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that end in all kinds of ways, called as often as a line says from
 * each of two threads; the answer is how many results were wrong. What stands
 * behind an exit says where its patch leads: below the program, where nothing
 * is. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 2
#define BELOW ".byte 0, 0, 0, 0xc0\n"
#define BEGIN(name) ".balign 64\n.globl " name "\n.type " name ", @function\n" name ":\n"
#define END(name) ".size " name ", . - " name "\n"

/* One function after the other. */
/* clang-format off */

/* e_other lies 128 KiB before the rest: a conditional jump there is long. */
__asm__(".text\n"
        BEGIN("e_other") "lea 1000(%rdi), %rax\n ret\n" END("e_other") BELOW
        ".skip 0x20000, 0x90\n"
        BEGIN("e_plain") "lea 1(%rdi), %rax\n nop\n ret\n" END("e_plain") BELOW
        BEGIN("e_repeated") "lea 2(%rdi), %rax\n nop\n .byte 0xf3, 0xc3\n" END("e_repeated")
        ".byte 0, 0, 0xc0\n"
        BEGIN("e_popping") "lea 3(%rdi), %rax\n nop\n .byte 0xc2, 0, 0\n" END("e_popping")
        ".byte 0, 0xc0\n"
        BEGIN("e_tail") "nop\n nop\n add $4, %rdi\n jmp e_other\n" END("e_tail")
        BEGIN("e_conditional") "lea 5(%rdi), %rax\n test $1, %dil\n .byte 0x0f, 0x84\n"
        ".long e_other - . - 4\n nop\n nop\n ret\n" END("e_conditional") BELOW
        BEGIN("e_parts") "lea 6(%rdi), %rax\n test $1, %dil\n jz e_parts.cold\n nop\n nop\n ret\n"
        END("e_parts") BELOW
        BEGIN("e_parts.cold") "lea 60(%rdi), %rax\n nop\n ret\n" END("e_parts.cold") BELOW
        BEGIN("e_pointer") "nop\n nop\n add $7, %rdi\n jmp *e_table(%rip)\n" END("e_pointer")
        ".data\n .balign 8\n e_table: .quad e_other\n .text\n");

/* clang-format on */

long e_plain(long), e_repeated(long), e_popping(long), e_tail(long), e_conditional(long),
    e_parts(long), e_pointer(long);

static __thread jmp_buf place;

/* Ends by a return one time in two, else is left. */
__attribute__((noinline, noclone)) long e_left(long a);
long e_left(long a) {
    if (a % 2 != 0)
        longjmp(place, 1);
    return a;
}

static long leave(long i) { return setjmp(place) == 0 ? e_left(i) : -1; }

static void *run(void *argument) {
    long n = (long)argument, wrong = 0;
    for (long i = 0; i < n; i++) {
        wrong += e_plain(i) != i + 1;
        wrong += e_repeated(i) != i + 2;
        wrong += e_popping(i) != i + 3;
        wrong += e_tail(i) != i + 1004;
        wrong += e_conditional(i) != (i % 2 ? i + 5 : i + 1000);
        wrong += e_parts(i) != (i % 2 ? i + 6 : i + 60);
        wrong += e_pointer(i) != i + 1007;
        wrong += leave(i) != (i % 2 ? -1 : i);
    }
    return (void *)wrong;
}

int main(void) {
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        pthread_t threads[THREADS];
        long wrong = 0, n = strtol(line, NULL, 10);
        void *volatile allocated = malloc(1), *result; /* a safe point */
        free(allocated);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, run, (void *)n);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], &result);
            wrong += (long)result;
        }
        printf("%ld wrong\n", wrong);
    }
    return 0;
}
