/* SPDX-License-Identifier: Apache-2.0 */
/* The library of many_functions.c. */
#include "many.h"

#define FUNCTION(n)                                                                                \
    NOINLINE long library_##n(long x) { return (x >> 3) + sizeof(#n); }

ALL(FUNCTION)
FUNCTION(last)
