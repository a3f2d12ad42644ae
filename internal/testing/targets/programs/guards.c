/* SPDX-License-Identifier: Apache-2.0 */
/* A library, not a program: each malloc writes to a page that nobody may write
 * to, and a handler of SIGSEGV makes it writable, as collectors of garbage do. */
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

extern void *__libc_malloc(size_t size);

static volatile char *page;

static void open_page(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (info->si_addr != page || mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) != 0)
        _exit(9);
}

__attribute__((constructor)) static void guard(void) {
    struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    void *got = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        _exit(8);
    page = got;
}

__attribute__((noinline)) long guards_touch(void) {
    if (page == NULL)
        return 0;
    *page = 1;
    return mprotect((void *)page, PAGE, PROT_NONE);
}

void *malloc(size_t size) {
    guards_touch();
    return __libc_malloc(size);
}
