/* SPDX-License-Identifier: Apache-2.0 */
/* Prints when its main began, in nanoseconds of CLOCK_MONOTONIC. */
#include <stdio.h>
#include <time.h>

int main(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    printf("%lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
    return 0;
}
