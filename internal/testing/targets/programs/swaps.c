/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: libraries come and go, one where another one was, with other
 * functions behind the same slots. The arguments are their paths. */
#include "target.h"

static char **paths;

static void use(const char *path, const char *name, int want) {
    void *library = dlopen(path, RTLD_LAZY);
    int (*function)(void) = library != NULL ? (int (*)(void))dlsym(library, name) : NULL;
    if (function == NULL || function() != want || dlclose(library) != 0)
        is_wrong();
}

static void swap(void) {
    free(malloc(1)); /* comes to a hook */
    use(paths[1], "one", 1);
    use(paths[2], "two", 2);
}

static void *swapping(void *unused) {
    (void)unused;
    return forever(swap);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    paths = argv;
    begin(swapping, 0);
    return target_serve(argv);
}
