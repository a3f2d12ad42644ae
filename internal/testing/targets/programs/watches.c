/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: the program uses the debug registers itself, argv[1] of them (1):
 * in its first thread, which counts what it stores, and in the one that
 * computes. Where the machine's registers count nothing, they must go on to.
 * Some virtual machines tell of a store twice, or not at all, and of one that the
 * kernel does not expect it tells the program: that is nobody's doing. */
#include "target.h"
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

static volatile long watched[4];
static volatile pid_t computer;
static int watcher = -1;
static bool counting;

static int watch(volatile long *word, pid_t thread) {
    struct perf_event_attr attributes = {.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attributes)};
    attributes.bp_type = HW_BREAKPOINT_W;
    attributes.bp_addr = (uintptr_t)word;
    attributes.bp_len = HW_BREAKPOINT_LEN_8;
    attributes.exclude_kernel = 1;
    int event = (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, 0);
    if (event < 0)
        is_wrong();
    return event;
}

static unsigned long long seen(void) {
    unsigned long long n = 0;
    if (read(watcher, &n, sizeof(n)) != sizeof(n))
        is_wrong();
    return n;
}

#define STORES 100
#define MISTAKES 10 /* of the machine */

static void look_at_watcher(void) {
    unsigned long long before = seen();
    for (int i = 0; i < STORES; i++)
        watched[0]++;
    unsigned long long counted = seen() - before;
    if (counting ? counted < STORES - MISTAKES || counted > STORES + MISTAKES : counted != 0)
        is_wrong();
}

/* That of a breakpoint of somebody else's is for who made it. */
static void trapped(int signal, siginfo_t *info, void *context) {
    const int by_perf_event = 6; /* TRAP_PERF, which old headers lack */
    (void)signal, (void)context;
    if (info->si_code == by_perf_event)
        is_wrong();
}

static void *computing_watched(void *unused) {
    computer = (pid_t)syscall(SYS_gettid);
    return computing(unused);
}

int main(int argc, char **argv) {
    int registers = argc > 1 ? atoi(argv[1]) : 1;
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGTRAP, &action, NULL);
    begin(computing_watched, 0);
    while (computer == 0)
        usleep(1000);
    watcher = watch(&watched[0], 0);
    watched[0]++;
    counting = seen() != 0;
    watch(&watched[0], computer);
    for (int i = 1; i < registers; i++) {
        watch(&watched[i], 0);
        watch(&watched[i], computer);
    }
    target_look = look_at_watcher;
    return target_serve(argv);
}
