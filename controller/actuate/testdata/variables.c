/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a variable each time it is asked for it. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

volatile bool flag;
volatile int16_t small = -5;
volatile int32_t number = 7;
volatile int64_t large = 1;
volatile double real = 2.5;
volatile char text[16] = "text";

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "flag"))
            printf("%d\n", flag);
        else if (!strcmp(line, "small"))
            printf("%d\n", small);
        else if (!strcmp(line, "number"))
            printf("%d\n", number);
        else if (!strcmp(line, "large"))
            printf("%lld\n", (long long)large);
        else if (!strcmp(line, "real"))
            printf("%g\n", real);
        else if (!strcmp(line, "number=9"))
            printf("%d\n", number = 9);
        else
            puts((const char *)text);
    }
    return 0;
}
