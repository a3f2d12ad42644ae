/* SPDX-License-Identifier: Apache-2.0 */
/* The library of locked.c. */
#define LIBRARY
#include "locked.c"
