/* SPDX-License-Identifier: Apache-2.0 */
/* A process that starts before its controller has come up, or in which nothing
 * has to be in place before main, waits for nobody: it makes its memory file
 * itself, from the header that the controller would have written, and leaves it
 * where the controller will look (dmlib_gate.h). From then on it is as good as
 * one that came through the gate: no hook will need a system call to find the
 * controller. */
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* The least kernel's headers lack it. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static bool beside_gate(const struct sockaddr_un *gate, const char *suffix,
                        struct sockaddr_un *out) {
    size_t length = strlen(gate->sun_path);
    if (length + strlen(suffix) >= sizeof(out->sun_path))
        return false;
    *out = *gate;
    strcpy(out->sun_path + length, suffix);
    return true;
}

/* How many headers there are. */
static size_t read_headers(const struct sockaddr_un *gate, struct attune_header *headers) {
    struct sockaddr_un path;
    if (!beside_gate(gate, ATTUNE_EARLY_HEADERS, &path))
        return 0;
    int fd = (int)dm_syscall(SYS_openat, AT_FDCWD, path.sun_path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    long size = dm_syscall(SYS_read, fd, headers, DM_GATE_ATTEMPTS * sizeof(*headers));
    dm_gate_close(fd);
    return size < 0 ? 0 : (size_t)size / sizeof(*headers);
}

static int memory_file(void) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    long fd = dm_syscall(SYS_memfd_create, ATTUNE_MEMORY_NAME, flags | MFD_NOEXEC_SEAL);
    if (fd == -EINVAL) /* before Linux 6.3 */
        fd = dm_syscall(SYS_memfd_create, ATTUNE_MEMORY_NAME, flags);
    return (int)fd;
}

/* A process that makes a longer file is killed, also where that is memory. */
static bool may_have_file(uint64_t size) {
    struct rlimit limit;
    return dm_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && size <= limit.rlim_cur;
}

/* Where no more memory is promised than there is, a page of a file is accounted for when
 * it is used first, and whoever does so then is killed if there is none. */
bool dm_early_commits(const char *overcommit) {
    char mode = '0';
    int fd = (int)dm_syscall(SYS_openat, AT_FDCWD, overcommit, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    long size = dm_syscall(SYS_read, fd, &mode, 1);
    dm_gate_close(fd);
    return size == 1 && mode == '2';
}

/* There all of it is taken at once, of which only a small file is worth it. */
#define COMMITTED_SIZE (1ull << 20)

static bool has_memory(int fd, uint64_t size) {
    return size <= COMMITTED_SIZE && dm_syscall(SYS_fallocate, fd, 0, 0, size) == 0;
}

int dm_early_file(const struct attune_header *header, bool commits) {
    if (!may_have_file(header->total_size))
        return -1;
    int fd = memory_file();
    if (fd < 0)
        return fd;
    if (dm_syscall(SYS_ftruncate, fd, header->total_size) == 0 &&
        (!commits || has_memory(fd, header->total_size)) &&
        dm_syscall(SYS_pwrite64, fd, header, sizeof(*header), 0) == (long)sizeof(*header) &&
        dm_syscall(SYS_fcntl, fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    dm_gate_close(fd);
    return -1;
}

/* The connection keeps what was sent until the controller accepts it. Of so many
 * descriptors under way as a process may have open, the kernel takes no more:
 * there is room again when the controller comes up. */
static bool leave(int to, const struct attune_hello *hello, int64_t deadline, int file, int self) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)hello, .iov_len = sizeof(*hello)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(header), (int[]){file, self}, 2 * sizeof(int));
    for (;;) {
        long sent = dm_syscall(SYS_sendmsg, to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent != -ETOOMANYREFS || dm_gate_now() >= deadline)
            return sent == (long)sizeof(*hello);
        dm_gate_pause();
    }
}

static bool deliver(const struct attune_hello *hello, const struct sockaddr_un *gate,
                    int64_t deadline, int file) {
    struct sockaddr_un path;
    if (!beside_gate(gate, ATTUNE_EARLY_SOCKET, &path))
        return false;
    int to = dm_gate_connect(&path, deadline);
    int self = (int)dm_syscall(SYS_pidfd_open, hello->pid, 0);
    bool done = to >= 0 && self >= 0 && leave(to, hello, deadline, file, self);
    dm_gate_close(self);
    dm_gate_close(to);
    return done;
}

/* The first file that fits into the address space; -1: none does. */
static int map_own(const struct attune_header *headers, size_t count, struct attune_hello *hello,
                   struct dm_mapping *mapping) {
    struct attune_ready ready = {.status = ATTUNE_READY_NO_MAP};
    bool commits = dm_early_commits("/proc/sys/vm/overcommit_memory");
    for (size_t i = 0; i < count && ready.status == ATTUNE_READY_NO_MAP; i++) {
        if (!dm_gate_leaves_room(headers[i].total_size))
            continue;
        int file = dm_early_file(&headers[i], commits);
        if (file < 0 && commits)
            continue;
        if (file < 0)
            break;
        hello->attempt = (uint32_t)i;
        dm_gate_map(file, headers[i].total_size, mapping, &ready);
        if (ready.status == ATTUNE_READY_OK)
            return file;
        dm_gate_close(file);
    }
    return -1;
}

bool dm_early_register(struct attune_hello hello, const struct sockaddr_un *gate, int64_t deadline,
                       struct dm_mapping *mapping) {
    struct attune_header headers[DM_GATE_ATTEMPTS];
    hello.flags |= ATTUNE_HELLO_EARLY;
    if (dm_live_unfiltered())
        hello.flags |= ATTUNE_HELLO_UNFILTERED;
    int file = map_own(headers, read_headers(gate, headers), &hello, mapping);
    if (file < 0)
        return false;
    bool done = deliver(&hello, gate, deadline, file);
    dm_gate_close(file);
    if (!done)
        dm_syscall(SYS_munmap, mapping->header, mapping->size);
    return done;
}
