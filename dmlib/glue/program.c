/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own file: in memory, or without a name in a folder. Nothing is
 * left behind, however the processes end. */
#include "glue.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* A memory file that may be executed; kernels before 6.3 do not know the flag
 * that says so. */
static int memory_file(const char *name) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

/* O_TMPFILE is not known to every file system (NFS has none): there, the file
 * has a name for a moment. */
static int unnamed_file(const char *folder) {
    struct statvfs system;
    char path[PATH_MAX];
    if (statvfs(folder, &system) != 0)
        return -1;
    if (system.f_flag & ST_NOEXEC) {
        errno = EACCES;
        return -1;
    }
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
    if (fd >= 0 || errno == EACCES || errno == EROFS)
        return fd;
    if ((size_t)snprintf(path, sizeof(path), "%s/.attune-XXXXXX", folder) >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* A file that is open for writing cannot be executed. */
static int reopen(int fd) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Fills a new file with a part and returns it open for reading; -1 with errno.
 * Takes over fd, which may be -1. */
static int filled(const struct pack *pack, const struct pack_part *part, int fd) {
    int result = -1;
    if (fd < 0)
        return -1;
    if (pack_write(pack, part, fd) && fchmod(fd, (part->mode & 0777) | 0500) == 0) {
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW); /* in memory */
        result = reopen(fd);
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return result;
}

/* The folder of the packed file. */
static const char *packed_folder(void) {
    static char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (size <= 0)
        return ".";
    path[size] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    slash[slash == path] = '\0';
    return path;
}

static int beside(const struct pack *pack, const struct pack_part *part, const char **where) {
    *where = packed_folder();
    return filled(pack, part, unnamed_file(*where));
}

/* Where no memory file can be executed, one on disk can, perhaps. */
int unpacked(const struct pack *pack, const struct pack_part *part, const char **where) {
    const char *folders[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    *where = "memory";
    int fd = filled(pack, part, memory_file(part->name));
    for (size_t i = 0; fd < 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
        if (folders[i] != NULL && folders[i][0] == '/')
            fd = filled(pack, part, unnamed_file(*where = folders[i]));
    return fd;
}

int program_file(const struct pack *pack, const struct pack_part *part, const char **where) {
    uint32_t flags = pack->record.flags;
    if ((flags & PACK_BESIDE) == 0)
        return unpacked(pack, part, where);
    int fd = beside(pack, part, where);
    if (fd < 0 && (flags & PACK_MAY_MOVE) != 0)
        fd = unpacked(pack, part, where);
    return fd;
}
