/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control program: arithmetic only, nothing that Attune could improve.
 *
 *     control_compute MILLIONS-OF-STEPS
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long i, steps = (argc > 1 ? atol(argv[1]) : 1000) * 1000000;
    double x = 0.5;

    for (i = 0; i < steps; i++)
        x = 3.7 * x * (1 - x);
    printf("%.17g\n", x);
    return 0;
}
