/* SPDX-License-Identifier: Apache-2.0 */
/* A library with two versions of one function. */
#include <stdlib.h>

int library_state = 1;

int old_versioned(int x) { return x + 1; }
int new_versioned(int x) { return x + 2; }
__asm__(".symver old_versioned, versioned@ATTUNE_1");
__asm__(".symver new_versioned, versioned@@ATTUNE_2");

int library_function(int x) {
    void *p = malloc(x);
    free(p);
    return library_state;
}

/* Taking the address makes a slot that is filled at load time (GLOB_DAT). */
void *(*library_allocator(void))(size_t, size_t) { return calloc; }
