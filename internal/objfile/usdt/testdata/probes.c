/* SPDX-License-Identifier: Apache-2.0 */
/* Static probes without <sys/sdt.h>, which is in a package of its own: notes
   in the format of SystemTap, one with a semaphore. */
#include <stdio.h>

unsigned short work_semaphore __attribute__((section(".probes"), visibility("hidden")));

#define PROBE(name, semaphore, text, ...)                                                          \
    __asm__ volatile("990: nop\n"                                                                  \
                     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                 \
                     ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                                 \
                     "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                   \
                     "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte " semaphore "\n"             \
                     ".asciz \"attune\"\n.asciz \"" name "\"\n.asciz \"" text "\"\n"               \
                     "994: .balign 4\n.popsection\n"                                               \
                     ".ifndef _.stapsdt.base\n"                                                    \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
                     ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                              \
                     "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                         \
                     ".popsection\n.endif\n" ::__VA_ARGS__)

__attribute__((noinline)) static void work(int n) {
    PROBE("work", "work_semaphore", "-4@%[n] 8@$7", [n] "nor"(n));
    if (work_semaphore)
        PROBE("watched", "work_semaphore", "-4@%[n]", [n] "nor"(n));
}

/* Works as often as each line of standard input says. */
int main(void) {
    int rounds;
    while (scanf("%d", &rounds) == 1) {
        for (int i = 0; i < rounds; i++)
            work(i);
        PROBE("done", "0", "");
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
