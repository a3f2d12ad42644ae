/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: code on stacks of 4 KB, with nothing mapped below. */
#include "target.h"
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 4096 };

static void *coroutine(void *unused) {
    (void)unused;
    ucontext_t here, there;
    char *stack = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack + PAGE, PAGE, PROT_READ | PROT_WRITE) != 0)
        is_wrong();
    getcontext(&there);
    there.uc_stack.ss_sp = stack + PAGE;
    there.uc_stack.ss_size = PAGE;
    there.uc_link = &here;
    makecontext(&there, (void (*)(void))computing, 1, NULL);
    swapcontext(&here, &there);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argc;
    begin(coroutine, 0);
    begin(coroutine, 0);
    return target_serve(argv);
}
