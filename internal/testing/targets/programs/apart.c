/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a library in a namespace of the loader's own (dlmopen), with a C library of
 * its own, whose memory is no other one's. The argument is its path. */
#define _GNU_SOURCE
#include "target.h"

#include <malloc.h>

static int (*part)(void);

/* Of the program's own C library. */
void *volatile own_mallopt;

static void call_part(void) {
    free(malloc(1)); /* comes to a hook */
    if (part() != 1)
        is_wrong();
}

static void *calling(void *unused) {
    (void)unused;
    return forever(call_part);
}

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : NULL;
    part = library != NULL ? (int (*)(void))dlsym(library, "part") : NULL;
    if (part == NULL)
        return 2;
    own_mallopt = (void *)mallopt;
    begin(calling, 0);
    return target_serve(argv);
}
