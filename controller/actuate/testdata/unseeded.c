/* SPDX-License-Identifier: Apache-2.0 */
/* Unmaps the random bytes that the kernel gave it, and prints a variable each time it is asked
 * for it. The first thread, whose stack that is, only waits. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

volatile int32_t number = 7;

static void *answer(void *unused) {
    char line[64];

    /* up to the name of the program, which comes last, so that the stack does not grow there again
     */
    const unsigned long first = getauxval(AT_RANDOM) & ~4095UL;
    const unsigned long last = getauxval(AT_EXECFN) | 4095UL;

    if (munmap((void *)first, last + 1 - first) != 0)
        exit(1);
    puts("ready");
    while (fgets(line, sizeof line, stdin))
        printf("%d\n", number);
    _Exit(0);
    return unused;
}

__attribute__((noinline)) static void wait_for_ever(void) {
    pthread_t thread;

    if (pthread_create(&thread, NULL, answer, NULL) == 0)
        pthread_join(thread, NULL);
    _Exit(1);
}

int main(void) {
    volatile char room[1 << 16]; /* so that the frames below are not in the page that goes */

    room[0] = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    wait_for_ever();
    return room[0];
}
