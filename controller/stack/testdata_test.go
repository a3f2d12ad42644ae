// SPDX-License-Identifier: Apache-2.0

package stack

// program is one whose functions keep no frame pointers. For each line it calls seen()
// from two places, for each of some strings, and from a recursion.
const program = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct sized { const char *bytes; unsigned long length; };
__attribute__((noinline)) long seen(const char *text, unsigned long length, struct sized *both) {
    __asm__ volatile("" : : "r"(text), "r"(length), "r"(both) : "memory");
    return length + 1;
}
__attribute__((noinline)) static long inner(const char *text, struct sized *both) {
    char room[200]; /* a frame that only its call frame information tells */
    __asm__ volatile("" : : "r"(room) : "memory");
    return seen(text, 3, both) * 2;
}
__attribute__((noinline)) long left(const char *text, struct sized *both) { return inner(text, both) + 1; }
__attribute__((noinline)) long right(const char *text, struct sized *both) { return seen(text, 3, both) + 2; }
__attribute__((noinline)) long deep(int depth, const char *text, struct sized *both) {
    return depth ? deep(depth - 1, text, both) + 1 : seen(text, 3, both) + 3;
}
int main(void) {
    char line[64], long_text[1000];
    struct sized both = {"abcdef", 4};
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = 0;
    const char *volatile texts[] = {"GET", "\x1b[31m\xff", "", long_text, (const char *)16};
    volatile long touched = 0;
    for (int i = 0; i < 3; i++)
        touched += strlen(texts[i]);
    touched += strlen(*(const char *volatile *)&both.bytes);
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin)) {
        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            left(texts[i], &both);
            right(texts[i], &both);
        }
        deep(100, texts[0], &both);
        puts("done");
    }
    return 0;
}
`
