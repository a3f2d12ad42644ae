/* SPDX-License-Identifier: Apache-2.0 */
/* Its environment holds constants, which nobody can write: what Attune looks for there, and
 * says itself to programs that it starts. */
#include "target.h"

static const char *const constants[] = {"LD_PRELOAD=a.so  b.so", "ATTUNE_SOCKET=/nowhere",
                                        "ATTUNE_ONCE=1", "ATTUNE_FILTERS=0"};

#define CONSTANTS (sizeof(constants) / sizeof(constants[0]))

extern char **environ;

static int stands_in_environment(const char *constant) {
    for (char **place = environ; *place != NULL; place++)
        if (*place == constant)
            return 1;
    return 0;
}

static void look(void) {
    for (size_t i = 0; i < CONSTANTS; i++)
        if (!stands_in_environment(constants[i]))
            is_wrong();
}

int main(int argc, char **argv) {
    (void)argc;
    for (size_t i = 0; i < CONSTANTS; i++)
        putenv((char *)constants[i]);
    target_look = look;
    begin(computing, 0);
    return target_serve(argv);
}
