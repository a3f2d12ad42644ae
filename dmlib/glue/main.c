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
#include <unistd.h>

#include "attune/dmlib_gate.h"

/* A controller is at this gate, or is still coming up (dmlib_gate.h). */
static bool has_controller(const char *gate) {
    char early[PATH_SIZE];
    return access(gate, F_OK) == 0 ||
           ((size_t)snprintf(early, sizeof(early), "%s" ATTUNE_EARLY_SOCKET, gate) <
                sizeof(early) &&
            access(early, F_OK) == 0);
}

/* The file of `attune off`, for the node or for this user (internal/offswitch). */
static bool switched_off(void) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const char *below = "attune/off";
    char own[PATH_SIZE];
    if (config == NULL || config[0] != '/') {
        config = home;
        below = ".config/attune/off";
    }
    if (config != NULL && config[0] == '/' &&
        (size_t)snprintf(own, sizeof(own), "%s/%s", config, below) < sizeof(own) &&
        access(own, F_OK) == 0)
        return true;
    return access("/etc/attune/off", F_OK) == 0;
}

/* Attune was switched off, or another controller has this process already. */
static bool left_alone(void) {
    const char *attune = getenv("ATTUNE"), *gate = getenv("ATTUNE_SOCKET");
    return (attune != NULL && strcmp(attune, "off") == 0) || switched_off() ||
           (gate != NULL && has_controller(gate));
}

#define DAMAGED "the file is damaged: it does not fit its checksum; copy it again, or pack it anew"

struct command {
    const struct pack *pack;
    const struct pack_part *program;
    int argc;
    char **argv;
};

/* What helps where the program could not be unpacked; by errno. */
static const char *remedy(const struct pack *pack) {
    if (errno == EFBIG)
        return "raise the limit of the size of files (ulimit -f)";
    if (pack->record.flags & PACK_BESIDE)
        return "put the file into a folder that you may write to, or pack with --place memory";
    return "set TMPDIR to a folder for programs";
}

/* The program as it is, with nobody watching. */
static _Noreturn void run_alone(const struct command *command) {
    const struct pack *pack = command->pack;
    const char *where = "";
    if (!pack_intact(pack))
        die(DAMAGED);
    int fd = program_file(pack, command->program, &where);
    if (fd < 0)
        die("the program cannot be unpacked in %s: %s; %s", where, strerror(errno), remedy(pack));
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
    setenv("ATTUNE_SOCKET", job_path(job, GATE_SOCKET, path), 1);
    snprintf(path, sizeof(path), "%u", (unsigned)own_filters());
    setenv("ATTUNE_FILTERS", path, 1);
    if ((pack->record.flags & PACK_NO_PRELOAD) == 0)
        prepend("LD_PRELOAD", job_path(job, library->name, path), ':');
    /* Programs with a shared AddressSanitizer end where anything is preloaded. */
    char *options = NULL;
    if (asprintf(&options, "%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "") >= 0)
        setenv("ASAN_OPTIONS", options, 1);
}

/* Writes a part into the folder, in the place of what has its name; one that the
 * file does not have need not be there. */
static bool install(const struct job *job, const struct pack *pack, enum pack_kind kind,
                    const char *name, mode_t mode) {
    const struct pack_part *part = pack_find(pack, kind);
    char path[PATH_SIZE], before[PATH_SIZE];
    if (part == NULL)
        return true;
    int fd = open(job_path(job, "new", before), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0)
        return false;
    bool done = pack_write(pack, part, fd) && fchmod(fd, mode) == 0;
    return close(fd) == 0 && done &&
           rename(before, job_path(job, name == NULL ? part->name : name, path)) == 0;
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

/* The first process of a job sets everything up. False: it cannot be done here.
 * The file is checked while the controller's process is being made. */
static bool lead(struct job *job, const struct command *command) {
    const struct pack *pack = command->pack;
    const struct pack_part *program = command->program;
    const struct pack_part *controller_part = pack_find(pack, PACK_CONTROLLER);
    const char *where;
    if (controller_part == NULL || !pack_may_be_written(controller_part, true))
        return false;
    int fd = program_file(pack, program, &where);
    if (fd < 0 || !install(job, pack, PACK_LIBRARY, NULL, 0555) ||
        !install(job, pack, PACK_HEADERS, GATE_SOCKET ATTUNE_EARLY_HEADERS, 0444) ||
        !job_listen(job))
        return false;
    struct start start = {job, pack, fd, command->argc, command->argv};
    struct starting starting;
    if (!controller_start(&start, &starting))
        return false;
    if (!pack_intact(pack)) {
        job_remove(job);
        die(DAMAGED);
    }
    pid_t controller = controller_release(&starting);
    return controller > 0 && link_program(job, program, controller);
}

/* True: a controller knows of this process, or soon will. */
static bool enter(struct job *job, const struct command *command) {
    enum role role = job_enter(job, command->pack);
    if (role != ROLE_FIRST)
        return role == ROLE_OTHER;
    if (lead(job, command))
        return true;
    job_remove(job); /* run_alone checks the file */
    return false;
}

/* Nothing is waited for: the controller comes up beside the program, which leaves
 * it the memory that they share (DMLib). */
static _Noreturn void run_controlled(struct job *job, const struct command *command) {
    char **before = environ, name[PATH_SIZE], path[PATH_SIZE];
    set_environment(job, command->pack);
    job_unlock(job);
    snprintf(name, sizeof(name), PROGRAM_FOLDER "/%s", command->program->name);
    job_path(job, name, path);
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
