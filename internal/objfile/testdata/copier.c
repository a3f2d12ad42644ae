/* SPDX-License-Identifier: Apache-2.0 */
/* Uses a variable of a library directly, so that the linker makes a copy. */
#include <stdio.h>

extern int library_state;

int main(void) {
    printf("library_state %p\nsum %d\n", (void *)&library_state, library_state);
    fflush(stdout);
    return getchar() == 'x';
}
