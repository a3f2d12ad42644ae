/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates a block of the size asked for and says where malloc took it from.
 * The threshold is not adjusted by free: the block is freed only when it came
 * from the heap, or leaked. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        volatile char *volatile p = malloc(strtoul(line, NULL, 10));
        if (!p)
            return 1;
        const volatile size_t *chunk = (const volatile size_t *)(uintptr_t)p;
        int mapped = chunk[-1] & 2; /* IS_MMAPPED in the chunk's size */
        puts(mapped ? "mapped" : "heap");
        if (!mapped)
            free((void *)p);
    }
    return 0;
}
