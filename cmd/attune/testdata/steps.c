/* SPDX-License-Identifier: Apache-2.0 */
/* Works in steps of 1 ms until its input ends: calls a function of its own with
 * 1 to 10 in turn, and functions of libc. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct order {
    long id;
    int count;
};

volatile int sink;

__attribute__((noinline)) int step(int n, struct order *order) {
    order->count = 10 * n;
    sink += n;
    return n % 2 ? -n : n;
}

int main(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    struct order order = {.id = 7};

    puts("ready");
    fflush(stdout);
    for (int i = 0; poll(&input, 1, 1) == 0; i++) {
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        sink += step(i % 10 + 1, &order) + getppid();
    }
    return 3;
}
