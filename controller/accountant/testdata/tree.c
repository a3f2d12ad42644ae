/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree TRUTH SEED PROCESSES orphans|waited: a random tree of processes that read and
 * write in many ways, and add up what they did in TRUTH, a file of zeros that they
 * map: no call is made for that. Ends when all have ended, orphans too.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct truth {
    uint64_t processes, read, written, read_calls, written_calls;
    int64_t alive;
    int64_t room; /* processes that may still be made */
};

static struct truth *truth;
static int zero, null, orphans;
static char buffer[1 << 16];

static void add(uint64_t *sum, uint64_t amount) {
    __atomic_fetch_add(sum, amount, __ATOMIC_SEQ_CST);
}

static void did_read(int64_t n) {
    if (n < 0)
        abort();
    add(&truth->read, n);
    add(&truth->read_calls, 1);
}

static void did_write(int64_t n) {
    if (n < 0)
        abort();
    add(&truth->written, n);
    add(&truth->written_calls, 1);
}

static void work(unsigned *seed) {
    struct iovec two[2] = {{buffer, 100}, {buffer + 100, rand_r(seed) % 5000}};
    size_t n = rand_r(seed) % sizeof(buffer);

    did_read(read(zero, buffer, n));
    did_read(pread(zero, buffer, n / 2, 0));
    did_read(readv(zero, two, 2));
    did_write(write(null, buffer, n));
    did_write(pwrite(null, buffer, n / 3, 0));
    did_write(writev(null, two, 2));
    for (volatile int i = rand_r(seed) % 300000; i; i--)
        ;
}

static void *thread(void *argument) {
    unsigned seed = (uintptr_t)argument;

    work(&seed);
    return 0;
}

static void live(unsigned seed, int depth);

static void leave(void) {
    __atomic_fetch_sub(&truth->alive, 1, __ATOMIC_SEQ_CST);
    _exit(0);
}

static void born(void) {
    add(&truth->processes, 1);
    __atomic_fetch_add(&truth->alive, 1, __ATOMIC_SEQ_CST);
}

static pid_t child(unsigned seed, int depth) {
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } arguments = {.exit_signal = SIGCHLD};
    pid_t pid;

    switch (seed % 4) {
    case 0:
        if ((pid = vfork()) == 0) { /* one that ends at once */
            did_write(write(null, buffer, 77));
            _exit(0);
        }
        add(&truth->processes, 1);
        return pid;
    case 1:
        pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
        break;
    default:
        pid = fork();
    }
    if (pid)
        return pid;
    born();
    if (orphans && seed % 3 == 0) {
        setsid();
        if (fork()) /* a daemon's parent */
            leave();
        born();
    }
    live(seed * 31 + 7, depth + 1);
    leave();
    return 0;
}

static void live(unsigned seed, int depth) {
    pthread_t threads[3];
    int n = rand_r(&seed) % 3;

    work(&seed);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], 0, thread, (void *)(uintptr_t)rand_r(&seed)))
            abort();
    while (__atomic_fetch_sub(&truth->room, 1, __ATOMIC_SEQ_CST) > 0) {
        pid_t pid = child(rand_r(&seed), depth);

        if (pid < 0)
            abort();
        if (rand_r(&seed) % 2)
            waitpid(pid, 0, 0);
        if (depth && rand_r(&seed) % 3 == 0)
            break;
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], 0);
    while (!orphans && waitpid(-1, 0, 0) > 0)
        ;
}

int main(int argc, char **argv) {
    int file;

    if (argc != 5 || (file = open(argv[1], O_RDWR)) < 0)
        return 2;
    truth = mmap(0, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    zero = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    orphans = strcmp(argv[4], "waited") != 0;
    if (truth == MAP_FAILED || zero < 0 || null < 0)
        return 2;
    truth->room = atoi(argv[3]);
    born();
    if (truth->room)
        live(atoi(argv[2]), 0);
    while (__atomic_load_n(&truth->alive, __ATOMIC_SEQ_CST) > 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, 0);
    /* They have said that they end, and do so in microseconds: --wait sees to it. */
    return 0;
}
