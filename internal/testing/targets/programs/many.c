/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: 2,000 threads, or argv[1]. */
#include "target.h"

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2000;
    for (int i = 0; i < threads; i++)
        begin(napping, 16384);
    return target_serve(argv);
}
