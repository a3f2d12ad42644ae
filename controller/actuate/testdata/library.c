/* SPDX-License-Identifier: Apache-2.0 */
/* Notes in a variable of the program's environment that it was here. */
#include <stdlib.h>

int from_library(void);

__attribute__((constructor)) static void begin(void) { setenv("ATTUNE_TEST_LIBRARY", "loaded", 1); }
__attribute__((destructor)) static void end(void) { setenv("ATTUNE_TEST_LIBRARY", "closed", 1); }

int from_library(void) { return 4711; }
