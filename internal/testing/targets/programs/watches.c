/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: the program uses the debug registers itself, argv[1] of them (1):
 * in its first thread, which counts what it stores, and in the one that
 * computes. Where the machine's registers count nothing, they must go on to. */
#include "target.h"
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>

static volatile long watched[4];
static volatile pid_t computer;
static int watcher = -1;
static unsigned long stores;
static unsigned long counted; /* of each store: 1, or 0 */

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

static void look_at_watcher(void) {
    for (int i = 0; i < 100; i++, stores++)
        watched[0]++;
    if (seen() != counted * stores)
        is_wrong();
}

static void *computing_watched(void *unused) {
    computer = (pid_t)syscall(SYS_gettid);
    return computing(unused);
}

int main(int argc, char **argv) {
    int registers = argc > 1 ? atoi(argv[1]) : 1;
    begin(computing_watched, 0);
    while (computer == 0)
        usleep(1000);
    watcher = watch(&watched[0], 0);
    watched[0]++;
    counted = seen() != 0;
    stores = 1;
    watch(&watched[0], computer);
    for (int i = 1; i < registers; i++) {
        watch(&watched[i], 0);
        watch(&watched[i], computer);
    }
    target_look = look_at_watcher;
    return target_serve(argv);
}
