/* SPDX-License-Identifier: Apache-2.0 */
/* One thread computes. For cases that are made from outside: it ends or
 * executes a program while it is attached to, is stopped, has another tracer,
 * other namespaces, another user, a deleted executable. */
#include "target.h"

int main(int argc, char **argv) {
    (void)argc;
    begin(computing, 0);
    return target_serve(argv);
}
