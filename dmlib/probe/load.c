/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a library, calls one of its functions if that is asked for, says
 * "ready", and stays until its input ends, so that the controller can look
 * where in the library's data a value that it was told has gone
 * (controller/actuate/hidden).
 *
 *   probe-load LIBRARY [FUNCTION [INTEGER...]]
 *   probe-load - PROGRAM [ARGUMENT...]    does so by an interpreter's script
 *
 * It takes no more than it needs, whatever the library does, and no rights by exec.
 * Runs as a process of its own with the libraries of the node, never inside an
 * application.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define ARGUMENTS_MAX 6

typedef long (*any_function)(long, long, long, long, long, long);

/* Limits of what this process and all that it becomes or starts may take. */
static const struct {
    __rlimit_resource_t resource;
    rlim_t most;
} limits[] = {
    {RLIMIT_AS, 4UL << 30}, {RLIMIT_CPU, 5},     {RLIMIT_FSIZE, 0},
    {RLIMIT_CORE, 0},       {RLIMIT_NOFILE, 64},
};

/* A limit that is lower already stays. */
static int confine(void) {
    for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit now;

        if (getrlimit(limits[i].resource, &now) != 0)
            return -1;
        if (now.rlim_max > limits[i].most)
            now.rlim_max = limits[i].most;
        if (now.rlim_cur > now.rlim_max)
            now.rlim_cur = now.rlim_max;
        if (setrlimit(limits[i].resource, &now) != 0)
            return -1;
    }
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int call(void *library, char **words) {
    long arguments[ARGUMENTS_MAX] = {0};
    any_function function = (any_function)dlsym(library, words[0]);

    if (function == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    for (int i = 0; i < ARGUMENTS_MAX && words[1 + i] != NULL; i++)
        arguments[i] = strtol(words[1 + i], NULL, 10);
    function(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    return 0;
}

int main(int argc, char **argv) {
    char rest[64];

    if (argc < 2) {
        fprintf(stderr, "usage: probe-load LIBRARY [FUNCTION [INTEGER...]]\n");
        return 2;
    }
    if (confine() != 0) {
        perror("limits of a probing process");
        return 1;
    }
    if (argv[1][0] == '-' && argc > 2) {
        execv(argv[2], &argv[2]);
        perror(argv[2]);
        return 1;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (argc > 2 && call(library, &argv[2]) != 0)
        return 1;
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return 1;
    while (read(STDIN_FILENO, rest, sizeof(rest)) > 0)
        ;
    return 0;
}
