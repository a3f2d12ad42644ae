/* SPDX-License-Identifier: Apache-2.0 */
/* needs MEGABYTES: of address space; then it waits for the end of its input. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 1;
    if (mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 1;
    while (getchar() != EOF)
        ;
    return 0;
}
