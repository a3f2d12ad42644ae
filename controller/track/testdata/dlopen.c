/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a library when it is told to by a line of input, then waits. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    char line[100];
    if (!fgets(line, sizeof line, stdin) || !dlopen("libm.so.6", RTLD_NOW))
        return 1;
    pause();
    return 0;
}
