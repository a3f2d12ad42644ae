/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best that can be given to MPICH over UCX before it starts, with more ranks
 * than CPUs: it has no setting that makes waiting ranks yield, so its progress
 * function is wrapped. To be preloaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker) {
    static unsigned (*progress)(void *);

    if (progress == NULL)
        progress = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
    sched_yield();
    return progress(worker);
}
