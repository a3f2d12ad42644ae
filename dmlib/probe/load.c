/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a library, calls one of its functions if that is asked for, says
 * "ready", and stays until its input ends, so that the controller can look
 * where in the library's data a value that it was told has gone
 * (controller/actuate/hidden).
 *
 *   probe-load LIBRARY [FUNCTION [INTEGER...]]
 *
 * Runs as a process of its own with the libraries of the node, never inside an
 * application.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARGUMENTS_MAX 6

typedef long (*any_function)(long, long, long, long, long, long);

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
