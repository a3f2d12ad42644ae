/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <string.h>

long number[4];
const char *self;
pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

void lock_pairs(pthread_mutex_t *mutex, long count) {
    while (count-- > 0) {
        errno = EDOM;
        int locked = pthread_mutex_lock(mutex);
        int unlocked = pthread_mutex_unlock(mutex);
        if (locked != 0 || unlocked != 0 || errno != EDOM)
            exit(3);
    }
}

static const struct subject *const all[] = {thread_subjects, signal_subjects, process_subjects,
                                            resource_subjects, confined_subjects};

static const struct subject *find(const char *name) {
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (const struct subject *s = all[i]; s->name != NULL; s++)
            if (strcmp(s->name, name) == 0)
                return s;
    return NULL;
}

int main(int argc, char **argv) {
    const struct subject *subject = argc > 1 ? find(argv[1]) : NULL;
    self = argv[0];
    for (int i = 2; i < argc && i < 6; i++)
        number[i - 2] = atol(argv[i]);
    if (subject == NULL) {
        fprintf(stderr, "target: what?\n");
        return 2;
    }
    subject->run();
    printf("done\n");
    return 0;
}
