/* SPDX-License-Identifier: Apache-2.0 */
/* From the packed file to the program. */
#include "glue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long the program waits for its controller at most. */
#define READY_MILLISECONDS 2000

/* Attune was switched off, or another controller has this process already. */
static bool left_alone(void) {
    const char *attune = getenv("ATTUNE"), *gate = getenv("ATTUNE_SOCKET");
    return (attune != NULL && strcmp(attune, "off") == 0) ||
           (gate != NULL && access(gate, F_OK) == 0);
}

#define DAMAGED "the file is damaged: it does not fit its checksum; copy it again, or pack it anew"

struct command {
    const struct pack *pack;
    const struct pack_part *program;
    int argc;
    char **argv;
};

/* The program as it is, with nobody watching. */
static _Noreturn void run_alone(const struct command *command) {
    const struct pack *pack = command->pack;
    const char *where = "";
    if (!pack_intact(pack))
        die(DAMAGED);
    int fd = program_file(pack, command->program, &where);
    if (fd < 0)
        die("the program cannot be unpacked in %s: %s; %s", where, strerror(errno),
            pack->record.flags & PACK_BESIDE
                ? "put the file into a folder that you may write to, or pack with --place memory"
                : "set TMPDIR to a folder for programs");
    syscall(SYS_execveat, fd, "", command->argv, environ, AT_EMPTY_PATH);
    die("the program cannot be executed from %s: %s", where, strerror(errno));
}

/* Appends what stood there before. */
static void prepend(const char *name, const char *value, char separator) {
    const char *before = getenv(name);
    char *all;
    if (before == NULL || before[0] == '\0')
        setenv(name, value, 1);
    else if (asprintf(&all, "%s%c%s", value, separator, before) >= 0)
        setenv(name, all, 1);
}

/* What brings the program to the controller's gate, as attune run sets it. */
static void set_environment(const struct job *job, const struct pack *pack) {
    const struct pack_part *library = pack_find(pack, PACK_LIBRARY);
    const char *asan = getenv("ASAN_OPTIONS");
    char path[PATH_SIZE];
    setenv("ATTUNE_JOB", job->id, 1);
    if (library == NULL)
        return;
    setenv("ATTUNE_SOCKET", job_path(job, "gate.sock", path), 1);
    if ((pack->record.flags & PACK_NO_PRELOAD) == 0)
        prepend("LD_PRELOAD", job_path(job, library->name, path), ':');
    /* Programs with a shared AddressSanitizer end where anything is preloaded. */
    char *options = NULL;
    if (asprintf(&options, "%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "") >= 0)
        setenv("ASAN_OPTIONS", options, 1);
}

static bool install_library(const struct job *job, const struct pack *pack) {
    const struct pack_part *library = pack_find(pack, PACK_LIBRARY);
    char path[PATH_SIZE];
    if (library == NULL)
        return true;
    int fd =
        open(job_path(job, library->name, path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0)
        return false;
    bool done = pack_write(pack, library, fd) && fchmod(fd, 0555) == 0;
    return close(fd) == 0 && done;
}

/* The way to the program that all processes of the job take: under its own name,
 * so that ps shows it, to the controller's descriptor. */
static bool link_program(const struct job *job, const struct pack_part *program, pid_t controller) {
    char target[64], name[PATH_SIZE], path[PATH_SIZE];
    snprintf(target, sizeof(target), "/proc/%d/fd/%d", (int)controller, FD_PROGRAM);
    if (mkdir(job_path(job, PROGRAM_FOLDER, path), 0700) != 0)
        return false;
    snprintf(name, sizeof(name), PROGRAM_FOLDER "/%s", program->name);
    return symlink(target, job_path(job, name, path)) == 0;
}

/* The first process of a job sets everything up. */
static bool lead(struct job *job, const struct command *command) {
    const struct pack *pack = command->pack;
    const struct pack_part *program = command->program;
    const char *where;
    int fd = program_file(pack, program, &where);
    if (fd < 0 || !install_library(job, pack) || !job_listen(job))
        return false;
    struct start start = {job, pack, fd, command->argc, command->argv};
    pid_t controller = controller_start(&start);
    return controller > 0 && link_program(job, program, controller);
}

/* True: a controller knows of this process, or soon will. */
static bool enter(struct job *job, const struct command *command) {
    enum role role = job_enter(job, command->pack);
    if (role != ROLE_FIRST)
        return role == ROLE_OTHER;
    bool intact = pack_intact(command->pack);
    if (intact && lead(job, command))
        return true;
    job_remove(job);
    if (!intact)
        die(DAMAGED);
    return false;
}

/* Until the controller can take processes in, for so long that it can come up on
 * a node that is busy, and no longer than it lives: the link leads to it. It is
 * waited for here, not by the library, which in a program that has locked itself
 * in must not make a system call. */
static void await_controller(const struct job *job, const char *program) {
    char ready[PATH_SIZE];
    job_path(job, READY_FILE, ready);
    for (int i = 0; i < READY_MILLISECONDS; i++) {
        if (access(ready, F_OK) == 0 || access(program, F_OK) != 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static _Noreturn void run_controlled(struct job *job, const struct command *command) {
    char **before = environ, name[PATH_SIZE], path[PATH_SIZE];
    set_environment(job, command->pack);
    job_unlock(job);
    snprintf(name, sizeof(name), PROGRAM_FOLDER "/%s", command->program->name);
    job_path(job, name, path);
    if ((command->pack->record.flags & PACK_NO_PRELOAD) == 0)
        await_controller(job, path);
    execve(path, command->argv, environ);
    environ = before; /* the controller is gone already */
    run_alone(command);
}

int main(int argc, char **argv) {
    struct pack pack;
    struct job job;
    pack_open(&pack);
    struct command command = {&pack, pack_find(&pack, PACK_PROGRAM), argc, argv};
    if (command.program == NULL)
        die("the file holds no program; pack it anew");
    if (getauxval(AT_SECURE) != 0)
        die("a packed program cannot be set-user-id or have capabilities");
    if (left_alone() || !enter(&job, &command))
        run_alone(&command);
    run_controlled(&job, &command);
}
