/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the controller: beside the program, not in its way. It is unpacked by
 * the process that becomes it, which is no child of the program, in a session of
 * its own, so that the program's signals and waits are as they would be.
 */
#include "glue.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above the numbers that are given out below. */
#define FD_ASIDE 64

/* Numbers as FD_... say, closed otherwise; *ready moves aside. */
static bool arrange(const struct start *start, int *ready) {
    const int from[] = {start->pack->fd, start->job->listener, start->program};
    int aside[3];
    *ready = fcntl(*ready, F_DUPFD_CLOEXEC, FD_ASIDE);
    for (int i = 0; i < 3; i++)
        aside[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_ASIDE);
    for (int i = 0; i < 3; i++)
        if (dup2(aside[i], FD_PACK + i) < 0)
            return false;
    return *ready >= 0;
}

/* Whoever reads the program's output must see its end: the controller keeps
 * standard error only, for the report. */
static void set_streams(bool quiet) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool keep = !quiet && fcntl(2, F_GETFD) >= 0;
    dup2(null, 0);
    dup2(null, 1);
    if (!keep)
        dup2(null, 2);
}

static void close_others(int ready) {
    syscall(SYS_close_range, FD_FIRST_FREE, ready - 1, 0);
    syscall(SYS_close_range, ready + 1, ~0u, 0);
}

/* Neither bound to the first rank's processor, nor deaf to what it ignored. */
static void set_free(void) {
    unsigned long all[128];
    memset(all, 0xff, sizeof(all));
    syscall(SYS_sched_setaffinity, 0, sizeof(all), all);
    for (int n = 1; n < NSIG; n++)
        signal(n, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The program's command line is for the report. */
static char **command_line(const struct job *job, int argc, char **program) {
    char *first[] = {"attune", "packed", (char *)job->folder, (char *)job->id};
    size_t count = sizeof(first) / sizeof(first[0]);
    char **argv = calloc(count + (size_t)argc + 1, sizeof(*argv));
    if (argv == NULL)
        return NULL;
    memcpy(argv, first, sizeof(first));
    memcpy(argv + count, program, (size_t)argc * sizeof(*argv));
    return argv;
}

/* By a link, so that its name is attune and not a number. */
static void execute(const struct job *job, int fd, char **argv) {
    char target[64], path[PATH_SIZE];
    snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
    if (argv != NULL && symlink(target, job_path(job, "attune", path)) == 0)
        execve(path, argv, environ);
}

static void become(const struct start *start) {
    const struct pack_part *part = pack_find(start->pack, PACK_CONTROLLER);
    const char *where;
    int fd = part == NULL ? -1 : unpacked(start->pack, part, &where);
    if (fd >= 0)
        execute(start->job, fd, command_line(start->job, start->argc, start->argv));
}

static _Noreturn void run_controller(const struct start *start, int ready) {
    pid_t self = getpid();
    if (!arrange(start, &ready))
        _exit(1);
    set_streams((start->pack->record.flags & PACK_QUIET) != 0);
    close_others(ready);
    set_free();
    if (write(ready, &self, sizeof(self)) != sizeof(self))
        _exit(1);
    close(ready);
    become(start);
    _exit(1); /* the program runs without; the next run cleans up */
}

/* Twice, so that the program has no child that it did not start. */
static bool fork_away(const struct start *start, int ready) {
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pid_t controller = fork();
        if (controller == 0)
            run_controller(start, ready);
        _exit(controller < 0);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return child > 0;
}

pid_t controller_start(const struct start *start) {
    int ends[2];
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    bool forked = fork_away(start, ends[1]);
    close(ends[1]);
    ssize_t size = -1;
    while (forked && (size = read(ends[0], &pid, sizeof(pid))) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    return size == sizeof(pid) ? pid : -1;
}
