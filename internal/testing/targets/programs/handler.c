/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread stays in a signal handler, on a signal stack of its own
 * that has little more room than the kernel asks for (sigaltstack). */
#include "target.h"
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static volatile int prepared;

static void stay(int signal) {
    (void)signal;
    forever(compute);
}

static void *in_handler(void *unused) {
    (void)unused;
    size_t frame = getauxval(AT_MINSIGSTKSZ), size = (frame + PAGE - 1) / PAGE * PAGE + PAGE;
    char *space = mmap(NULL, PAGE + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t other = {.ss_sp = space + PAGE, .ss_size = size};
    struct sigaction action = {.sa_handler = stay, .sa_flags = SA_ONSTACK};
    if (space == MAP_FAILED || mprotect(space + PAGE, size, PROT_READ | PROT_WRITE) != 0)
        is_wrong();
    sigaltstack(&other, NULL);
    sigaction(SIGUSR2, &action, NULL);
    prepared = 1;
    return forever(compute);
}

int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread = begin(in_handler, 0);
    while (!prepared)
        usleep(1000);
    usleep(1000);
    pthread_kill(thread, SIGUSR2);
    return target_serve(argv);
}
