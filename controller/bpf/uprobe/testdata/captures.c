// SPDX-License-Identifier: Apache-2.0
/*
 * A program to capture from. It reads lines "FUNCTION COUNT" and answers each
 * with "done" after COUNT calls, numbered from 0. Static probes stand in
 * fixed(), whose arguments are in a register, in memory and a constant.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct box {
    int whole;
    unsigned char small;
    float real;
    double exact;
    struct box *next;
    const char *name;
};

/* Where its file offset and its address are known to the test. */
struct box outer,
    inner = {.whole = -7, .small = 200, .real = -1.5f, .exact = 1e300, .name = "inner box"};
struct box outer = {.whole = 41, .next = &inner, .name = ""};
long counter = -3;

static volatile long sink;

__attribute__((noinline)) long takes(long number, struct box *box, const char *text, int negative,
                                     unsigned long large, void *nowhere) {
    __asm__ volatile("" : : "r"(box), "r"(text), "r"(negative), "r"(large), "r"(nowhere));
    return number * 2 - 4;
}

__attribute__((noinline)) double halves(double value) { return value / 2; }

/* As <sys/sdt.h> writes them. */
#define PROBE(name, text, ...)                                                                     \
    __asm__ volatile("990: nop\n"                                                                  \
                     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                 \
                     ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                                 \
                     "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                   \
                     "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n"                         \
                     ".asciz \"attune\"\n.asciz \"" name "\"\n.asciz \"" text "\"\n"               \
                     "994: .balign 4\n.popsection\n"                                               \
                     ".ifndef _.stapsdt.base\n"                                                    \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
                     ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                              \
                     "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                         \
                     ".popsection\n.endif\n" ::__VA_ARGS__)

__attribute__((noinline)) void fixed(long number, double value) {
    struct box box = {.whole = (int)-number, .exact = value};

    __asm__ volatile("" : : "r"(&box) : "memory");
    PROBE("fixed", "8@%[n] -4@%[whole] -1@$-5 8f@%[exact] 8f@%[value]", [n] "r"(number),
          [whole] "m"(box.whole), [exact] "m"(box.exact), [value] "x"(value));
}

int main(void) {
    char line[256], name[64];
    long count;

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%63s %ld", name, &count) != 2)
            return 2;
        for (long i = 0; i < count; i++) {
            if (!strcmp(name, "takes"))
                sink = takes(i, &outer, "some text", -9, 1ul << 63, (void *)8);
            else if (!strcmp(name, "halves"))
                sink = (long)halves((double)i);
            else if (!strcmp(name, "fixed"))
                fixed(i, (double)i + 0.25);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
