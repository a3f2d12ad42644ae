// SPDX-License-Identifier: Apache-2.0
// An exception passes half of the calls of passed, as many as a line says; the
// answer is how many were caught.
#include <cstdio>
#include <cstdlib>

static volatile int sink;

__attribute__((noinline)) static void thrower(long i) {
    if (i % 2 != 0)
        throw i;
    sink = sink + 1;
}

extern "C" __attribute__((noinline)) long passed(long i) {
    thrower(i);
    return i + sink;
}

int main() {
    char line[64];
    setvbuf(stdout, nullptr, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin) != nullptr) {
        long n = strtol(line, nullptr, 10), caught = 0;
        free(malloc(100)); // a safe point
        for (long i = 0; i < n; i++) {
            try {
                passed(i);
            } catch (long) {
                caught++;
            }
        }
        printf("%ld caught\n", caught);
    }
    return 0;
}
