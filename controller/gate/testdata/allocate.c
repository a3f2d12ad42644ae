/* SPDX-License-Identifier: Apache-2.0 */
/* allocate [fork]: allocates until its input ends; with fork, a child does. */
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0) {
        for (int i = 0; i < 100; i++) {
            void *volatile block = malloc(1000);
            free(block);
        }
    }
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc == 1) {
        allocate();
        return 0;
    }
    void *volatile before = malloc(1);
    free(before);
    pid_t child = fork();
    if (child == 0)
        allocate();
    else
        waitpid(child, NULL, 0);
    return 0;
}
