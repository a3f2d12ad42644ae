/* SPDX-License-Identifier: Apache-2.0 */
/* shapes MB one|turns|together|shared: memory of one process; of four one after
 * another; of four at once; of a parent, which four children share. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int *filled; /* processes whose memory is */

/* Keeps memory until that of all is filled, and then for a while. */
static void hold(size_t bytes, int all) {
    char *memory = malloc(bytes);

    memset(memory, 1, bytes);
    __atomic_fetch_add(filled, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(filled, __ATOMIC_SEQ_CST) < all)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, 0);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, 0);
    free(memory);
}

int main(int argc, char **argv) {
    size_t bytes = (argc > 2 ? atoi(argv[1]) : 0) * 1000000ul;
    char *memory, *shape = argc > 2 ? argv[2] : "";

    filled = mmap(0, sizeof(*filled), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(shape, "one")) {
        hold(bytes, 1);
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
                hold(bytes, strcmp(shape, "turns") ? 4 : 1);
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
