/* SPDX-License-Identifier: Apache-2.0 */
/* shapes MB one|turns|together|shared: memory of one process; of four one after
 * another; of four at once; of a parent, which four children share. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void hold(size_t bytes) {
    char *memory = malloc(bytes);

    memset(memory, 1, bytes);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, 0);
    free(memory);
}

int main(int argc, char **argv) {
    size_t bytes = (argc > 2 ? atoi(argv[1]) : 0) * 1000000ul;
    char *memory, *shape = argc > 2 ? argv[2] : "";

    if (!strcmp(shape, "one")) {
        hold(bytes);
    } else if (!strcmp(shape, "shared")) {
        memory = malloc(bytes);
        memset(memory, 1, bytes);
        for (int i = 0; i < 4; i++)
            if (!fork()) {
                nanosleep(&(struct timespec){.tv_nsec = 300000000}, 0);
                _exit(memory[i] != 1);
            }
    } else {
        for (int i = 0; i < 4; i++) {
            if (!fork()) {
                hold(bytes);
                _exit(0);
            }
            if (!strcmp(shape, "turns"))
                wait(0);
        }
    }
    while (wait(0) > 0)
        ;
    return 0;
}
