/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that is always in a timed system call, argv[1]; answers a line
 * with how many of these calls failed. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
    struct pollfd in = {.fd = 0, .events = POLLIN};
    struct timespec nap = {.tv_nsec = 200000000};
    int failed = 0, sleeps = argc > 1 && strcmp(argv[1], "nanosleep") == 0;
    char line[64];

    puts("ready");
    fflush(stdout);
    for (;;) {
        if (sleeps && nanosleep(&nap, NULL) != 0)
            failed++;
        int ready = poll(&in, 1, sleeps ? 0 : 200);
        if (ready < 0)
            failed++;
        if (ready <= 0)
            continue;
        if (fgets(line, sizeof line, stdin) == NULL)
            return failed != 0;
        printf("%d failed\n", failed);
        fflush(stdout);
    }
}
