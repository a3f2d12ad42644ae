/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: threads are created and end at any moment, so also during an
 * action. Each allocates, so that it comes by a hook. */
#include "target.h"

static void *brief(void *unused) {
    (void)unused;
    void *volatile block = malloc(1000); /* not to be left out */
    free(block);
    target_value(1);
    return NULL;
}

static void one_more(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, brief, NULL) != 0 || pthread_join(thread, NULL) != 0)
        is_wrong();
}

static void *churning(void *unused) {
    (void)unused;
    return forever(one_more);
}

int main(int argc, char **argv) {
    (void)argc;
    begin(churning, 0);
    begin(churning, 0);
    return target_serve(argv);
}
