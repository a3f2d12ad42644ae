/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: it executes itself again while it has argv[1] threads (100), all of
 * which the kernel ends for that, one by one. Told to by "exec". */
#include "target.h"

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 100;
    target_again = argv;
    for (int i = 0; i < threads; i++)
        begin(napping, 16384);
    return target_serve(argv);
}
