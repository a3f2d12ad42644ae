/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the glue share. The glue is what a packed file starts with:
 * it checks the file, sees to it that one controller runs per node and job, and
 * becomes the program: the process stays the same, so that arguments, process
 * id, parent, signals and exit status need no help.
 */
#ifndef GLUE_GLUE_H
#define GLUE_GLUE_H

#include <stdbool.h>
#include <sys/types.h>

#include "format.h"

#define GLUE_CANNOT_EXECUTE 126

/* Descriptors that the controller is started with. */
enum { FD_PACK = 3, FD_JOIN, FD_PROGRAM, FD_EARLY, FD_FIRST_FREE };

/* Says why on standard error and ends the process. */
_Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...);

/* ---- process.c ---- */

/* When a process was started, clock ticks since boot; 0: unknown. */
uint64_t start_ticks(pid_t pid);
pid_t parent_of(pid_t pid); /* 0: unknown */
/* How many seccomp filters this process is under; 0: unknown. */
uint32_t own_filters(void);

/* ---- program.c ---- */

/* Unpacks the program into a file without a name, open for reading. -1 with
 * errno; *where is then the place. */
int program_file(const struct pack *pack, const struct pack_part *part, const char **where);
/* The same for a part that need not lie in a certain place. */
int unpacked(const struct pack *pack, const struct pack_part *part, const char **where);

/* ---- job.c: the folder that the processes of a job on this node share ---- */

#define JOB_FOLDER_MAX 60

struct job {
    char folder[JOB_FOLDER_MAX + 1];
    char id[32];
    int self;  /* pidfd of this process */
    int lock;  /* held from job_enter to job_unlock */
    int join;  /* of the first process: listens where the others say that they are there */
    int early; /* of the first process: listens where DMLib leaves its memory */
};

enum role {
    ROLE_NONE,  /* there is no place for a folder, or who is there does not listen */
    ROLE_FIRST, /* the controller is to be started */
    ROLE_OTHER, /* a controller is there and knows of this process */
};

/* Finds or makes the job's folder and locks it. */
enum role job_enter(struct job *job, const struct pack *pack);
void job_unlock(struct job *job);

/* The first process: makes the sockets and says that it is there. */
bool job_listen(struct job *job);
/* The first process: removes all that is in the folder, and the folder. */
void job_remove(const struct job *job);

/* Path of something in the folder; the caller's buffer has PATH_SIZE bytes. */
#define PATH_SIZE 256
const char *job_path(const struct job *job, const char *name, char *buffer);

/* Folder inside the job's for the link that the program is started by. */
#define PROGRAM_FOLDER "bin"
/* Made by the controller when it is up. */
#define GATE_SOCKET "gate.sock"

/* ---- controller.c ---- */

/* What the controller is started with. */
struct start {
    const struct job *job;
    const struct pack *pack;
    int program; /* its unpacked file */
    int argc;
    char **argv;
};

/* A controller that is being started. */
struct starting {
    pid_t child;  /* between it and this process */
    int answer;   /* where its pid is told */
    int released; /* where it is told to go on */
};

/* Begins to start the controller as nobody's child, and does not wait. */
bool controller_start(const struct start *start, struct starting *starting);
/* Lets it go on. The pid, or -1: from now on the program's file can be reached as
 * /proc/PID/fd/FD_PROGRAM, however long it takes to come up. Without this call it
 * ends with this process. */
pid_t controller_release(const struct starting *starting);

#endif
