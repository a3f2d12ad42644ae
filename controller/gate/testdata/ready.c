/* SPDX-License-Identifier: Apache-2.0 */
/* Says that it is ready, and allocates until its input ends. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    puts("ready");
    fflush(stdout);
    do {
        void *volatile block = malloc(1000);
        free(block);
    } while (getchar() != EOF);
    return 0;
}
