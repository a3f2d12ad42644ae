/* SPDX-License-Identifier: Apache-2.0 */
/* What many_functions.c and many_library.c share: names 00 to 99. */
#ifndef MANY_H
#define MANY_H

#include <time.h>

#define HUNDRED 100
#define NOINLINE __attribute__((noinline, noclone, noipa))

#define TENS(DO, t)                                                                                \
    DO(t##0) DO(t##1) DO(t##2) DO(t##3) DO(t##4) DO(t##5) DO(t##6) DO(t##7) DO(t##8) DO(t##9)
#define ALL(DO)                                                                                    \
    TENS(DO, 0)                                                                                    \
    TENS(DO, 1)                                                                                    \
    TENS(DO, 2) TENS(DO, 3) TENS(DO, 4) TENS(DO, 5) TENS(DO, 6) TENS(DO, 7) TENS(DO, 8) TENS(DO, 9)

long many_helper(long x);

#endif
