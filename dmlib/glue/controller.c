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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above the numbers that are given out below. */
#define FD_ASIDE 64

/* Numbers as FD_... say; inherited by what is executed. */
static bool arrange(const struct start *start) {
    const int from[] = {start->pack->fd, start->job->join, start->program, start->job->early};
    enum { COUNT = sizeof(from) / sizeof(from[0]) };
    int aside[COUNT];
    for (int i = 0; i < COUNT; i++)
        aside[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_ASIDE);
    for (int i = 0; i < COUNT; i++)
        if (dup2(aside[i], FD_PACK + i) < 0)
            return false;
    return true;
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

/* Neither bound to the first rank's processor, nor deaf to what it ignored, nor held
 * to the size of files that the program set itself. */
static void set_free(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_FSIZE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_FSIZE, &files);
    }
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

/* Nothing of the file is executed before all of it was checked, which the process
 * that becomes the program does meanwhile. */
static bool released(int fd) {
    char go;
    ssize_t size;
    while ((size = recv(fd, &go, 1, 0)) < 0 && errno == EINTR)
        ;
    return size == 1;
}

/* What the program's own runtime is told: the controller is written in Go, too. */
static void set_own(void) {
    const char *const names[] = {"GOGC", "GOMEMLIMIT", "GODEBUG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

static _Noreturn void run_controller(const struct start *start, int wait) {
    set_streams((start->pack->record.flags & PACK_QUIET) != 0);
    syscall(SYS_close_range, FD_FIRST_FREE, wait - 1, 0);
    syscall(SYS_close_range, wait + 1, ~0u, 0);
    set_free();
    set_own();
    if (released(wait))
        become(start);
    _exit(1); /* the program runs without; the next run cleans up */
}

/* The child of the program: it ends at once, so that the program has no child
 * that it did not start. It tells the controller's pid, whose descriptors are in
 * place then, whenever it comes to run. */
static _Noreturn void fork_again(const struct start *start, int answer, int wait) {
    answer = fcntl(answer, F_DUPFD_CLOEXEC, FD_ASIDE);
    wait = fcntl(wait, F_DUPFD_CLOEXEC, FD_ASIDE);
    setsid();
    pid_t controller = wait >= 0 && arrange(start) ? fork() : -1;
    if (controller == 0)
        run_controller(start, wait);
    _exit(write(answer, &controller, sizeof(controller)) != sizeof(controller));
}

bool controller_start(const struct start *start, struct starting *starting) {
    int answer[2], go[2];
    /* A socket tells without a signal that there is nobody. */
    if (pipe2(answer, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) != 0)
        return false;
    *starting = (struct starting){fork(), answer[0], go[1]};
    if (starting->child == 0) {
        close(go[1]); /* or its end would never be seen */
        fork_again(start, answer[1], go[0]);
    }
    close(answer[1]);
    close(go[0]);
    return starting->child > 0;
}

pid_t controller_release(const struct starting *starting) {
    pid_t pid = -1;
    while (waitpid(starting->child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (read(starting->answer, &pid, sizeof(pid)) != sizeof(pid) || pid < 0 ||
        send(starting->released, "", 1, MSG_NOSIGNAL) != 1)
        return -1;
    return pid;
}
