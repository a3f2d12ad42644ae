/* SPDX-License-Identifier: Apache-2.0 */
/* The constructor: registers the process, or leaves it as it was. */
#include "dmlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char *own_path(void) {
    Dl_info info;
    if (dladdr((const void *)dm_static_control, &info) == 0 || info.dli_fname == NULL)
        return "";
    return info.dli_fname;
}

/* Calls lead here from the start. Of a library that came by dlopen, they do not. Asked for
 * a function that a program does not define, as many do malloc. */
static bool preloaded(void) {
    extern ssize_t __read_chk(int fd, void *buffer, size_t size, size_t capacity);
    extern const char __ehdr_start[] DM_HIDDEN;
    Dl_info info;
    return dladdr((const void *)(uintptr_t)__read_chk, &info) != 0 &&
           info.dli_fbase == __ehdr_start;
}

static bool start(void) {
    struct dm_mapping mapping;
    if (getauxval(AT_SECURE) != 0)
        return false;
    const char *path = getenv("ATTUNE_SOCKET");
    if (path == NULL || !dm_gate_address(path))
        return false;
    if (dm_sandboxed(getenv("ATTUNE_FILTERS"))) /* before any other system call */
        return false;
    if (!dm_live_wipe_in_children() || !dm_live_prepare())
        return false;
    dm_stub_prepare();
    dm_lock_prepare();
    if (!dm_gate_register(0, ATTUNE_GATE_MILLISECONDS, &mapping))
        return false;
    dm_thread_prepare();
    dm_live_publish(&mapping);
    return true;
}

static void come_with_program(void) {
    dm_real_resolve_preloaded();
    bool once = getenv("ATTUNE_ONCE") != NULL;
    if (!start() || once)
        dm_environment_clean(environ, own_path());
}

/* In a program that runs already attune_dm_attach does the rest: its environment is its own,
 * other threads may be changing it, and what it holds may be constant. */
__attribute__((constructor)) static void dm_constructor(void) {
    static bool started;
    if (__atomic_exchange_n(&started, true, __ATOMIC_ACQ_REL))
        return;
    int saved = errno;
    if (preloaded())
        come_with_program();
    errno = saved;
}
