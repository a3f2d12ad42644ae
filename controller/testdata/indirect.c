/* SPDX-License-Identifier: Apache-2.0 */
/* Calls an indirect function (IFUNC) as often as a line says. What is chosen
 * begins with a jump, as a function does that was only made to call another. */
#include <stdio.h>
#include <stdlib.h>

long i_body(long a);
__attribute__((noinline, noclone, used)) long i_body(long a) { return a + 1; }

__asm__(".text\n.type i_chosen, @function\n"
        "i_chosen: .byte 0xe9\n .long i_body - . - 4\n.size i_chosen, . - i_chosen\n");
long i_chosen(long a);

static long (*resolve(void))(long) { return i_chosen; }
long i_pick(long a) __attribute__((ifunc("resolve")));

int main(void) {
    char line[64];
    void *volatile allocated;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        long sum = 0;
        allocated = malloc(1); /* a safe point */
        free(allocated);
        for (long i = strtol(line, NULL, 10); i > 0; i--)
            sum += i_pick(i) - i;
        printf("%ld\n", sum);
    }
    return 0;
}
