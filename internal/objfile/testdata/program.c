/* SPDX-License-Identifier: Apache-2.0 */
/* Prints where its own symbols lie, then waits for the end of its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int attune_number = 4711;
unsigned char attune_byte = 7;
long attune_table[100];
const char attune_constant[] = "constant";
__thread int attune_local = 1;

__attribute__((noinline)) int attune_function(int x) {
    return x + attune_number + attune_byte + (int)attune_table[x] + attune_local;
}

static __attribute__((noinline, used)) int attune_static(int x) { return x * 2 + attune_number; }

static int first(int x) { return x + 1; }
static int (*choose(void))(int) { return first; }
int attune_indirect(int x) __attribute__((ifunc("choose")));

int main(int argc, char **argv) {
    char *copy = malloc(strlen(argv[0]) + 1);
    strcpy(copy, argv[0]);
    printf("attune_function %p\n", (void *)attune_function);
    printf("attune_static %p\n", (void *)attune_static);
    printf("attune_number %p\n", (void *)&attune_number);
    printf("attune_byte %p\n", (void *)&attune_byte);
    printf("attune_table %p\n", (void *)attune_table);
    printf("sum %d %d\n", attune_function(argc), attune_indirect(argc));
    free(copy);
    fflush(stdout);
    return getchar() == 'x';
}
