/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a parallel region of libgomp for each line it reads, and says how many
 * threads it had. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin)) {
        int threads = 0;
#pragma omp parallel reduction(+ : threads)
        threads++;
        printf("%d\n", threads);
    }
    return 0;
}
