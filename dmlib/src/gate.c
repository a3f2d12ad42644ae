/* SPDX-License-Identifier: Apache-2.0 */
/* The start gate, application side. Only system calls, made directly: it also
 * runs in a forked child, inside any hook. */
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

/* The end of a conversation that the controller is not told. */
#define NO_ANSWER UINT32_MAX

static struct sockaddr_un address;

/* Known to the linker: where this library is loaded. */
extern const char __ehdr_start[] DM_HIDDEN;

bool dm_gate_address(const char *path) {
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof(address.sun_path))
        return false;
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path, length + 1);
    return true;
}

int64_t dm_gate_now(void) {
    struct timespec now = {0};
    dm_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void dm_gate_close(int fd) {
    if (fd >= 0)
        dm_syscall(SYS_close, fd);
}

/* Not by nanosleep(2): the thread may have been taken out of a timed system call,
 * and the kernel would forget how that goes on. */
void dm_gate_pause(void) {
    struct timespec pause = {.tv_nsec = 1000000};
    dm_syscall(SYS_ppoll, NULL, 0, &pause, NULL, sizeof(uint64_t));
}

/* A non-blocking connect to a Unix socket fails with EAGAIN while the
 * listener's queue is full; there is nothing to poll for. */
int dm_gate_connect(const struct sockaddr_un *to, int64_t deadline) {
    int fd = (int)dm_syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    for (;;) {
        long result = dm_syscall(SYS_connect, fd, to, sizeof(*to));
        if (result == 0)
            return fd;
        if ((result != -EAGAIN && result != -EINTR) || dm_gate_now() >= deadline) {
            dm_gate_close(fd);
            return (int)result;
        }
        dm_gate_pause();
    }
}

static bool wait_readable(int fd, int64_t deadline) {
    for (;;) {
        /* Where the thread did not run for so long, what it waits for may be
         * there: one look in any case. */
        int64_t left = deadline - dm_gate_now();
        if (left < 0)
            left = 0;
        struct timespec timeout = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        long ready = dm_syscall(SYS_ppoll, &entry, 1, &timeout, NULL, sizeof(uint64_t));
        if (ready > 0)
            return true;
        if ((ready < 0 && ready != -EINTR) || left == 0)
            return false;
    }
}

static bool gate_send(int fd, const void *message, size_t size) {
    long sent = dm_syscall(SYS_sendto, fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
    return sent == (long)size;
}

/* Returns the descriptor that came with the message, or -1. */
static int gate_receive(int fd, struct attune_welcome *welcome) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = welcome, .iov_len = sizeof(*welcome)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    long size = dm_syscall(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    int received = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (size >= 0 && header != NULL && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&received, CMSG_DATA(header), sizeof(int));
    if (size != (long)sizeof(*welcome))
        welcome->magic = 0;
    return received;
}

/* Without the seal the file could shrink, and the next access to it would
 * kill the program. */
static bool acceptable_file(int fd, uint64_t size) {
    struct stat info;
    if (dm_syscall(SYS_fstat, fd, &info) != 0 || (uint64_t)info.st_size < size)
        return false;
    long seals = dm_syscall(SYS_fcntl, fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

static void introduce(struct attune_header *header) {
    header->pid = (int32_t)dm_syscall(SYS_getpid, 0);
    header->dmlib_base = (uint64_t)(uintptr_t)__ehdr_start;
    header->stub_entry = DM_STUB_ENTRY;
    header->stub_size = DM_STUB_SIZE;
    header->stub_count = DM_STUB_COUNT;
    header->stub_target = (uint64_t)(uintptr_t)dm_stub_target;
    header->patch_entry = DM_PATCH_ENTRY;
    header->patch_exit = DM_PATCH_EXIT;
    header->stub_unbound = DM_STUB_UNBOUND;
    header->hook_entry = (uint64_t)(uintptr_t)dm_hook_entry;
    header->attend_entry = (uint64_t)(uintptr_t)dm_attend_stopped;
    __atomic_store_n(&header->state, 1, __ATOMIC_RELEASE);
}

void dm_gate_map(int fd, uint64_t size, struct dm_mapping *mapping, struct attune_ready *ready) {
    ready->status = ATTUNE_READY_BAD_ABI;
    if (fd < 0 || !acceptable_file(fd, size))
        return;
    long memory = dm_syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory < 0 && memory > -4096) {
        ready->status = ATTUNE_READY_NO_MAP;
        ready->error = (int32_t)-memory;
        return;
    }
    if (!dm_layout_check((void *)memory, size, mapping)) {
        dm_syscall(SYS_munmap, memory, size);
        return;
    }
    dm_syscall(SYS_madvise, memory, size, MADV_DONTDUMP);
    /* A page that one thread writes to is no reason for 2 MB. */
    dm_syscall(SYS_madvise, memory, size, MADV_NOHUGEPAGE);
    introduce(mapping->header);
    ready->status = ATTUNE_READY_OK;
}

/* Commands may come while the gate is waited for; a look costs less than what
 * the controller does between two of them. */
#define GATE_LOOK_MILLISECONDS 1

/* Points are placed meanwhile. A controller that never says go has put us
 * under control all the same. */
static void wait_for_go(int fd, int64_t deadline, const struct dm_mapping *mapping) {
    struct attune_go go;
    for (;;) {
        int64_t now = dm_gate_now();
        int64_t look = now + GATE_LOOK_MILLISECONDS;
        dm_mailbox_run_in_gate(mapping);
        if (wait_readable(fd, look < deadline ? look : deadline) || now >= deadline)
            break;
    }
    /* If it stayed unread, closing the socket would be an error at the other end, which
     * then might not read our ready. */
    dm_syscall(SYS_recvfrom, fd, &go, sizeof(go), MSG_DONTWAIT, NULL, NULL);
}

static uint64_t limit_of(int resource) {
    struct rlimit limit;
    if (dm_syscall(SYS_prlimit64, 0, resource, NULL, &limit) != 0)
        return RLIM_INFINITY;
    return limit.rlim_cur;
}

/* All of it is filled at once where what is mapped is locked. */
#define LOCKED_SIZE (1ull << 20)

bool dm_gate_leaves_room(uint64_t size) {
    if (dm_locks_memory && size > LOCKED_SIZE)
        return false;
    return dm_layout_leaves_room(size, limit_of(RLIMIT_AS), limit_of(RLIMIT_MEMLOCK));
}

/* Maps the file that the controller has sent, or says that it is too large. */
static void map_file(int file, uint64_t size, struct dm_mapping *mapping,
                     struct attune_ready *ready) {
    ready->status = ATTUNE_READY_NO_MAP;
    ready->error = ENOMEM;
    if (dm_gate_leaves_room(size))
        dm_gate_map(file, size, mapping, ready);
}

/* One conversation. Leaves ready->status as it was if there was none. */
static void converse(int fd, const struct attune_hello *hello, int64_t deadline,
                     struct dm_mapping *mapping, struct attune_ready *ready) {
    struct attune_welcome welcome = {0};
    if (!gate_send(fd, hello, sizeof(*hello)) || !wait_readable(fd, deadline))
        return;
    int file = gate_receive(fd, &welcome);
    if (welcome.magic == ATTUNE_ABI_MAGIC && welcome.status == ATTUNE_WELCOME_OK) {
        map_file(file, welcome.total_size, mapping, ready);
        gate_send(fd, ready, sizeof(*ready));
        /* Of a forked child nothing waits in main: no go will come. */
        if (ready->status == ATTUNE_READY_OK && (hello->flags & ATTUNE_HELLO_FORKED) == 0)
            wait_for_go(fd, deadline, mapping);
    }
    dm_gate_close(file);
}

bool dm_gate_register(uint32_t hello_flags, int milliseconds, struct dm_mapping *mapping) {
    int64_t deadline = dm_gate_now() + milliseconds;
    struct attune_ready ready = {.magic = ATTUNE_ABI_MAGIC, .status = ATTUNE_READY_NO_MAP};
    struct attune_hello hello = {
        .magic = ATTUNE_ABI_MAGIC,
        .version = ATTUNE_ABI_VERSION,
        .flags = hello_flags,
        .pid = (int32_t)dm_syscall(SYS_getpid, 0),
        .tid = (int32_t)dm_syscall(SYS_gettid, 0),
        .deadline = (uint32_t)deadline,
    };
    /* Its filters are known without asking; with some, the controller looks at
     * them while it waits. */
    bool past = hello_flags == 0 && dm_live_unfiltered();
    if (past && dm_early_register(hello, &address, deadline, mapping))
        return true;
    /* The controller may offer a smaller file when one did not fit. */
    for (; hello.attempt < DM_GATE_ATTEMPTS && ready.status == ATTUNE_READY_NO_MAP;
         hello.attempt++) {
        int fd = dm_gate_connect(&address, deadline);
        if (fd == -ENOENT || fd == -ECONNREFUSED)
            return !past && dm_early_register(hello, &address, deadline, mapping);
        ready.status = NO_ANSWER;
        if (fd < 0)
            break;
        converse(fd, &hello, deadline, mapping, &ready);
        dm_gate_close(fd);
    }
    return ready.status == ATTUNE_READY_OK;
}

int dm_gate_adopt(int fd, uint64_t size, struct dm_mapping *mapping) {
    struct attune_ready ready = {0};
    dm_gate_map(fd, size, mapping, &ready);
    switch (ready.status) {
    case ATTUNE_READY_OK:
        return 0;
    case ATTUNE_READY_NO_MAP:
        return ready.error;
    default:
        return EPROTO;
    }
}
