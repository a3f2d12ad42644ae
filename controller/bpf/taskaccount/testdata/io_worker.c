/* SPDX-License-Identifier: Apache-2.0 */
/* io_worker: has the kernel make a worker of io_uring for it, and executes itself, which ends the
 * worker. When that is gone, it reads a million bytes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The links of a directory: two, and one for each directory in it. */
static unsigned threads(void) {
    struct stat task;

    return stat("/proc/self/task", &task) ? 0 : (unsigned)task.st_nlink - 2;
}

static int read_million(void) {
    static char block[1000000];
    int zero = open("/dev/zero", O_RDONLY);

    return read(zero, block, sizeof(block)) != sizeof(block);
}

int main(int argc, char **argv) {
    struct io_uring_params p = {0};
    struct io_uring_sqe *entry;
    unsigned *ring;
    int fd;

    if (argc > 1) {
        while (threads() > 1)
            ;
        return read_million();
    }
    fd = (int)syscall(SYS_io_uring_setup, 1, &p);
    if (fd < 0)
        return 2;
    ring = mmap(NULL, p.sq_off.array + sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                IORING_OFF_SQ_RING);
    entry = mmap(NULL, sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    if (ring == MAP_FAILED || entry == MAP_FAILED)
        return 3;
    entry->opcode = IORING_OP_NOP;
    entry->flags = IOSQE_ASYNC; /* by a worker */
    ring[p.sq_off.array / sizeof(*ring)] = 0;
    __atomic_store_n(ring + p.sq_off.tail / sizeof(*ring), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
        return 4;
    if (threads() < 2)
        return 5;
    execl("/proc/self/exe", argv[0], "again", NULL);
    return 6;
}
