/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread has one fault after the other and handles them, as programs
 * do that find out in this way which pages are written to. What it is told by
 * somebody else than the kernel is not handled. */
#include "target.h"
#include <signal.h>
#include <sys/mman.h>

#define PAGE 4096

static volatile char *page;
static volatile unsigned long traps;

static void handle(int number, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code <= 0)
        _exit(9);
    if (number == SIGTRAP)
        traps++;
    else if (info->si_addr != page || mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) != 0)
        _exit(8);
}

static void fault(void) {
    unsigned long before = traps;
    __asm__ volatile("int3");
    if (traps != before + 1)
        is_wrong();
    *page = 1;
    if (mprotect((void *)page, PAGE, PROT_NONE) != 0)
        is_wrong();
}

static void *faulting(void *unused) {
    (void)unused;
    return forever(fault);
}

int main(int argc, char **argv) {
    (void)argc;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || sigaction(SIGSEGV, &action, NULL) != 0 ||
        sigaction(SIGTRAP, &action, NULL) != 0)
        return 1;
    begin(faulting, 0);
    return target_serve(argv);
}
