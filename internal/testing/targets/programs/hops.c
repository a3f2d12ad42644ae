/* SPDX-License-Identifier: Apache-2.0 */
/* One process at a time, that often another: each begins the next one and ends. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int left = argc > 1 ? atoi(argv[1]) : 0;

    while (left-- > 0)
        if (fork() > 0)
            _exit(0);
    return 0;
}
