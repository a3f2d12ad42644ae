/* SPDX-License-Identifier: Apache-2.0 */
/* Works in steps of 1 ms until its input ends: calls a function of its own with
 * 1 to 10 in turn, and functions of libc. For each f that it reads it forks a
 * process that does the same, for each e one that executes another program, and
 * says its number. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct order {
    long id;
    int count;
};

volatile int sink;
volatile double weight;

__attribute__((noinline)) int step(int n, struct order *order) {
    order->count = 10 * n;
    sink += n;
    return n % 2 ? -n : n;
}

int main(void) {
    struct order order = {.id = 7};
    char byte = 0;
    int child = 0;

    puts("ready");
    fflush(stdout);
    fcntl(0, F_SETFL, O_NONBLOCK);
    for (int i = 0; read(0, &byte, 1) != 0; i++) {
        if ((byte == 'f' || byte == 'e') && (child = fork()) > 0) {
            printf("%d\n", child);
            fflush(stdout);
        } else if (byte == 'e' && child == 0) {
            execlp("sleep", "sleep", "2", (char *)0);
        }
        byte = 0;
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        sink += step(i % 10 + 1, &order) + getppid();
        usleep(1000);
    }
    return 3;
}
