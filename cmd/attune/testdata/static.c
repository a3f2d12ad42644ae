/* SPDX-License-Identifier: Apache-2.0 */
/* Says that it runs, and exits as its argument says. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    puts("static");
    return argc > 1 ? atoi(argv[1]) : 0;
}
