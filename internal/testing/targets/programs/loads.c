/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread is in dlopen or dlclose most of the time. */
#include "target.h"

static void load(void) {
    void *library = dlopen("libutil.so.1", RTLD_NOW);
    if (library == NULL)
        library = dlopen("libm.so.6", RTLD_NOW);
    if (library == NULL || dlclose(library) != 0)
        is_wrong();
}

static void *loading(void *unused) {
    (void)unused;
    return forever(load);
}

int main(int argc, char **argv) {
    (void)argc;
    begin(loading, 0);
    begin(computing, 0);
    return target_serve(argv);
}
