/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: 2,000 threads, or argv[1]. */
#include "target.h"

static void nap(void) { usleep(200000); }

static void *sleeping(void *unused) {
    (void)unused;
    return forever(nap);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2000;
    for (int i = 0; i < threads; i++)
        begin(sleeping, 16384);
    return target_serve(argv);
}
