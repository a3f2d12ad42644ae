/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a process for each argument, which computes for so many seconds of CPU time, and
 * waits for them in that order. It is looked at for a while after that. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void compute(double most) {
    while ((double)clock() / CLOCKS_PER_SEC < most)
        ;
    _exit(0);
}

int main(int argc, char **argv) {
    pid_t *children = calloc((size_t)argc, sizeof(*children));
    int i;

    if (children == NULL)
        return 1;
    for (i = 1; i < argc; i++)
        if ((children[i] = fork()) == 0)
            compute(atof(argv[i]));
    for (i = 1; i < argc; i++)
        if (waitpid(children[i], NULL, 0) < 0)
            return 1;
    usleep(500000);
    return 0;
}
