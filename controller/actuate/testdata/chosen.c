/* SPDX-License-Identifier: Apache-2.0 */
/* Answers what its indirect functions (IFUNC) return, called through the PLT.
 * Two of them choose the same code, as memcpy and memmove do. */
#include <stdio.h>

typedef long function(long);
#define CODE static __attribute__((noinline, noclone))

CODE long tens(long a) { return a * 10; }
CODE long hundreds(long a) { return a * 100; }
CODE long thousands(long a) { return a * 1000; }
CODE long plus(long a) { return a + 1; }
__attribute__((noinline)) long minus(long a) { return a - 1; }

static volatile int never;
static function *for_alone(void) { return never ? thousands : tens; }
static function *for_twin(void) { return plus; }
static function *for_other_twin(void) { return never ? hundreds : plus; }
static function *for_shown(void) { return minus; } /* through the GOT, if exported */

long alone(long a) __attribute__((ifunc("for_alone")));
long twin(long a) __attribute__((ifunc("for_twin")));
long other_twin(long a) __attribute__((ifunc("for_other_twin")));
long shown(long a) __attribute__((ifunc("for_shown")));

int main(void) {
    char line[16];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin) != NULL)
        printf("%ld %ld %ld %ld\n", alone(5), twin(5), other_twin(5), shown(5));
    return 0;
}
