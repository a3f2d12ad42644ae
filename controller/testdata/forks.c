/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the line "fork" in a child that takes over and whose exit status it
 * passes on. For each line with a number, calls two library functions so many
 * times and tells whether they gave what the kernel gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int wrong(void) {
    return getppid() != (pid_t)syscall(SYS_getppid) || getsid(0) != (pid_t)syscall(SYS_getsid, 0);
}

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        long n = strtol(line, NULL, 10), bad = 0;
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        if (strncmp(line, "fork", 4) == 0) {
            int status = -1;
            pid_t child = fork();
            if (child > 0)
                waitpid(child, &status, 0);
            if (child != 0)
                return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
        }
        for (long i = 0; i < n; i++)
            bad += wrong();
        printf("%ld wrong\n", bad);
    }
    return 0;
}
