/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who executes a program that has always been brief leaves DMLib out of its
 * environment (brief.c). Not points: nobody asks for these. What the C library
 * executes by itself, as system(3) does, does not come here, nor do posix_spawn(3),
 * whose versions differ, and the calls with a list of words.
 */
#include "hook.h"

#include <unistd.h>

/* Of an environment that is copied: a page of the stack, which may be small. Not
 * inlined, so that it takes none otherwise. */
#define MOST 512

static DM_NOINLINE int execute_without(int (*execute)(const char *, char *const[], char *const[]),
                                       const char *program, char *const arguments[],
                                       char *const environment[]) {
    size_t room = dm_environment_count(environment) + 1;
    if (room > MOST)
        return execute(program, arguments, environment);
    char *copy[room];
    bool without = dm_environment_copy(environment, copy, room);
    return execute(program, arguments, without ? copy : environment);
}

DM_EXPORT int execve(const char *path, char *const arguments[], char *const environment[]) {
    if (dm_brief(path))
        return execute_without(dm_real_execve, path, arguments, environment);
    return dm_real_execve(path, arguments, environment);
}

DM_EXPORT int execv(const char *path, char *const arguments[]) {
    if (dm_brief(path))
        return execute_without(dm_real_execve, path, arguments, environ);
    return dm_real_execv(path, arguments);
}

DM_EXPORT int execvpe(const char *name, char *const arguments[], char *const environment[]) {
    if (dm_brief_in_path(name))
        return execute_without(dm_real_execvpe, name, arguments, environment);
    return dm_real_execvpe(name, arguments, environment);
}

DM_EXPORT int execvp(const char *name, char *const arguments[]) {
    if (dm_brief_in_path(name))
        return execute_without(dm_real_execvpe, name, arguments, environ);
    return dm_real_execvp(name, arguments);
}
