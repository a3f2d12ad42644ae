/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a job on this node:
 *
 *   lock        flock(2) of whoever enters, and of the controller when it ends
 *   join.sock          where processes say that they are there, one message each
 *   gate.sock          the controller's start gate, as soon as it is up (DMLib)
 *   gate.sock.early    where DMLib leaves its memory until then
 *   gate.sock.headers  what it makes that memory of
 *   bin/NAME           leads to the program's file, which the controller holds
 *   libattune…         DMLib
 *
 * The controller removes it all, under the lock, once every process has ended.
 * Whoever waited for the lock sees that the file behind it has no name any more,
 * and begins again.
 */
#include "glue.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "attune/dmlib_gate.h"

/* How long a process waits for others to enter; they take milliseconds. */
#define LOCK_MILLISECONDS 2000
#define MAX_PENDING 4096 /* processes that are there before the controller is */
#define FOLDER_NAME 21   /* "/job-" and 16 digits */
#define JOIN_SOCKET "join.sock"
#define LIBRARY_PREFIX "libattune-dm"

#define JOIN_VERSION 2

/* What a process says, with a pidfd of itself if it can (SCM_RIGHTS): it may
 * have ended before anybody listens. The kernel tells its pid and user. */
struct join {
    char magic[8]; /* of the record */
    uint32_t version;
    int32_t parent; /* as it sees it */
    uint64_t start_ticks;
};

/* ---- which job ---- */

#define MAX_SCRIPTS 16 /* between a rank and its launcher */

/* What a process has where PMI speaks with the launcher of this one. */
static bool connection(pid_t pid, char name[64]) {
    const char *number = getenv("PMI_FD");
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, number == NULL ? -1 : atoi(number));
    ssize_t size = readlink(path, name, 63);
    name[size > 0 ? size : 0] = '\0';
    return strncmp(name, "socket:", 7) == 0;
}

/* Whether a process was told of its connection in the environment that it was executed with. A
 * launcher was not, which has the rank's end as well until it has closed that. */
static bool told(pid_t pid) {
    char path[64], *entry = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    FILE *environment = fopen(path, "re");
    while (environment != NULL && !found && getdelim(&entry, &room, '\0', environment) > 0)
        found = strncmp(entry, "PMI_FD=", 7) == 0;
    if (environment != NULL)
        fclose(environment);
    free(entry);
    return found;
}

/* The parent, or beyond scripts, which pass the rank's connection on, the launcher: its end
 * is another one, as is the connection of a rank that has become a launcher. */
static pid_t launcher(void) {
    char own[64], other[64];
    pid_t pid = getppid();
    if (!connection(getpid(), own))
        return pid;
    for (int i = 0;
         i < MAX_SCRIPTS && connection(pid, other) && strcmp(own, other) == 0 && told(pid); i++)
        pid = parent_of(pid);
    return pid;
}

static void identify_by(char *text, size_t size, const char *what, pid_t pid) {
    snprintf(text, size, "%s %d %lu", what, (int)pid, (unsigned long)start_ticks(pid));
}

/* What the processes of one execution on this node have in common, and no
 * others. Several executions may share a batch job, so its id is not enough; and
 * SLURM_STEP_ID is missing where mpirun starts ranks on the first node. */
static void identify(char *text, size_t size) {
    const char *name_space = getenv("PMIX_NAMESPACE");
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    if (name_space != NULL)
        snprintf(text, size, "pmix %s", name_space);
    else if (job != NULL && step != NULL)
        snprintf(text, size, "slurm %s %s", job, step);
    else if (getenv("PMI_RANK") != NULL) /* one launcher per node has started all */
        identify_by(text, size, "pmi", launcher());
    else
        identify_by(text, size, "process", getpid());
}

/* The same file, host and job: folders may lie on a file system that nodes
 * share. The first half is the host's, by which it knows its own when it cleans up. */
static uint64_t job_hash(const struct pack *pack) {
    char text[1280], job[768], host[256] = "";
    gethostname(host, sizeof(host) - 1);
    identify(job, sizeof(job));
    snprintf(text, sizeof(text), "%016lx %s %s", (unsigned long)pack->record.content_hash, host,
             job);
    return xxh64(host, strlen(host)) << 32 | (uint32_t)xxh64(text, strlen(text));
}

/* ---- which folder ---- */

/* Ours, and nobody else may write to it: never one that somebody prepared. */
static bool is_ours(const char *path) {
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 022) == 0;
}

/* Sockets have short paths, the loader splits LD_PRELOAD at some characters, and
 * the library must be mapped for execution. */
static bool suitable(const char *path) {
    struct statvfs system;
    return strlen(path) + FOLDER_NAME <= JOB_FOLDER_MAX && strpbrk(path, " :$\t\n") == NULL &&
           is_ours(path) && statvfs(path, &system) == 0 && (system.f_flag & ST_NOEXEC) == 0 &&
           access(path, W_OK) == 0;
}

static bool suitable_below(char *path, size_t size, const char *folder, const char *name) {
    if (folder == NULL || folder[0] != '/')
        return false;
    return (size_t)snprintf(path, size, "%s/%s", folder, name) < size && suitable(path);
}

/* The same places, in the same order, as internal/rundir has them. */
static bool find_base(char *path, size_t size) {
    char name[32];
    snprintf(name, sizeof(name), "attune-%u", (unsigned)geteuid());
    return suitable_below(path, size, getenv("XDG_RUNTIME_DIR"), "attune") ||
           (geteuid() == 0 && suitable_below(path, size, "/run", "attune")) ||
           suitable_below(path, size, getenv("TMPDIR"), name) ||
           suitable_below(path, size, "/tmp", name) || suitable_below(path, size, "/dev/shm", name);
}

const char *job_path(const struct job *job, const char *name, char *buffer) {
    snprintf(buffer, PATH_SIZE, "%s/%s", job->folder, name);
    return buffer;
}

/* ---- lock ---- */

static bool lock_in_time(int fd) {
    for (int i = 0; i < LOCK_MILLISECONDS; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static bool still_named(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

/* The folder in the one above, which goes with the last that is in it. */
static bool make_folder(const struct job *job) {
    char base[PATH_SIZE];
    snprintf(base, sizeof(base), "%s", job->folder);
    *strrchr(base, '/') = 0;
    return is_ours(base) && is_ours(job->folder);
}

/* The folder may be removed between any two of these steps, then all of them are
 * done again. */
static bool lock_folder(struct job *job) {
    char path[PATH_SIZE];
    for (int attempt = 0; attempt < 100; attempt++) {
        errno = 0;
        if (!make_folder(job)) {
            if (errno == ENOENT)
                continue;
            return false;
        }
        job->lock = open(job_path(job, "lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (job->lock < 0 && errno == ENOENT)
            continue;
        if (job->lock < 0)
            return false;
        bool locked = lock_in_time(job->lock);
        if (locked && still_named(job->lock))
            return true;
        close(job->lock);
        if (!locked)
            return false;
    }
    return false;
}

void job_unlock(struct job *job) {
    if (job->lock >= 0)
        close(job->lock);
    job->lock = -1;
}

/* ---- sockets ---- */

static int socket_in(const struct job *job, const char *name, struct sockaddr_un *address) {
    char path[PATH_SIZE];
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    strncpy(address->sun_path, job_path(job, name, path), sizeof(address->sun_path) - 1);
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static bool send_with(int to, const void *data, size_t size, int descriptor) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

/* How long a process waits where the queue is full: somebody is there who does not
 * accept. */
#define JOIN_MICROSECONDS 250000

/* The connection stays in the socket's queue, with what was said, until it is
 * accepted, also after this end is closed. False with errno. */
static bool join(const struct job *job) {
    struct sockaddr_un address;
    struct join message = {.magic = PACK_MAGIC,
                           .version = JOIN_VERSION,
                           .parent = getppid(),
                           .start_ticks = start_ticks(getpid())};
    int fd = socket_in(job, JOIN_SOCKET, &address);
    if (fd < 0)
        return false;
    const struct timeval wait = {.tv_usec = JOIN_MICROSECONDS};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    /* Of so many descriptors under way as a process may have open, the kernel
     * takes no more. */
    bool done = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                (send_with(fd, &message, sizeof(message), job->self) ||
                 send(fd, &message, sizeof(message), MSG_NOSIGNAL) == (ssize_t)sizeof(message));
    int saved = errno;
    close(fd);
    errno = saved;
    return done;
}

/* What join fails with where the controller was killed, or never was. */
static bool means_nobody(int error) {
    return error == ENOENT || error == ECONNREFUSED || error == ECONNRESET || error == EPIPE;
}

static int listening(const struct job *job, const char *name) {
    struct sockaddr_un address;
    int fd = socket_in(job, name, &address);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(fd, MAX_PENDING) == 0)
        return fd;
    close(fd);
    return -1;
}

bool job_listen(struct job *job) {
    job->early = listening(job, GATE_SOCKET ATTUNE_EARLY_SOCKET);
    job->join = listening(job, JOIN_SOCKET);
    return job->early >= 0 && job->join >= 0 && join(job);
}

/* ---- all of it ---- */

/* The lock, and what processes that still live may load at any time (internal/rundir). */
static bool stays(const struct FTW *place, const char *path) {
    const char *name = path + place->base;
    return place->level == 1 && (strcmp(name, "lock") == 0 ||
                                 strncmp(name, LIBRARY_PREFIX, strlen(LIBRARY_PREFIX)) == 0);
}

/* What cannot be removed is left to the next run. */
static int remove_all(const char *path, const struct stat *info, int type, struct FTW *place) {
    (void)info, (void)type, (void)place;
    remove(path);
    return 0;
}

static int remove_rest(const char *path, const struct stat *info, int type, struct FTW *place) {
    if (place->level > 0 && !stays(place, path))
        remove_all(path, info, type, place);
    return 0;
}

/* Whether what loses its parent becomes a child of this process: the first one of a
 * container, as a rule. It would wait for the controller, or end it with itself. */
static bool adopts(void) {
    int reaper = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper != 0);
}

void job_remove(const struct job *job) { nftw(job->folder, remove_all, 4, FTW_DEPTH | FTW_PHYS); }

enum role job_enter(struct job *job, const struct pack *pack) {
    char base[JOB_FOLDER_MAX - FOLDER_NAME + 1];
    *job = (struct job){.lock = -1, .join = -1, .early = -1};
    job->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (job->self < 0 || !find_base(base, sizeof(base)))
        return ROLE_NONE;
    unsigned long hash = job_hash(pack);
    snprintf(job->folder, sizeof(job->folder), "%s/job-%016lx", base, hash);
    snprintf(job->id, sizeof(job->id), "packed-%016lx", hash);
    if (!lock_folder(job))
        return ROLE_NONE;
    if (join(job))
        return ROLE_OTHER;
    bool nobody = means_nobody(errno), adopting = adopts();
    if (nobody && adopting)
        job_remove(job);
    if (!nobody || adopting) {
        job_unlock(job);
        return ROLE_NONE;
    }
    /* A controller that was killed leaves its things. */
    nftw(job->folder, remove_rest, 4, FTW_DEPTH | FTW_PHYS);
    return ROLE_FIRST;
}
