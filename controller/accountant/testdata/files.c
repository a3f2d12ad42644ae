/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files FOLDER SEED: reads and writes files and sockets in many ways, and says on
 * standard output what it did: PATH READ WRITTEN READ_CALLS WRITTEN_CALLS OPENS MAPS
 * for each file, and "network RECEIVED SENT" at last.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(call)                                                                                 \
    ({                                                                                             \
        ssize_t result_ = (call);                                                                  \
        if (result_ < 0) {                                                                         \
            perror(#call);                                                                         \
            exit(1);                                                                               \
        }                                                                                          \
        result_;                                                                                   \
    })

struct file {
    char path[256];
    uint64_t read, written, read_calls, written_calls, opens, maps;
    int fd;
};

enum { A, B, C, PROC, FILES };
static struct file *files; /* shared with children */
static uint64_t *network;  /* received, sent */
static char buffer[1 << 16];
static unsigned seed;

static size_t some(void) { return 1 + rand_r(&seed) % (sizeof(buffer) / 2); }

static void did_read(int i, ssize_t n) {
    __atomic_fetch_add(&files[i].read, n, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&files[i].read_calls, 1, __ATOMIC_SEQ_CST);
}

static void did_write(int i, ssize_t n) {
    __atomic_fetch_add(&files[i].written, n, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&files[i].written_calls, 1, __ATOMIC_SEQ_CST);
}

static void use(int i) {
    int fd = files[i].fd;
    struct iovec two[2] = {{buffer, some()}, {buffer + 7, some()}};

    did_write(i, MUST(write(fd, buffer, some())));
    did_write(i, MUST(pwrite(fd, buffer, some(), 100)));
    did_write(i, MUST(writev(fd, two, 2)));
    did_write(i, MUST(pwritev2(fd, two, 2, 5, 0)));
    MUST(lseek(fd, 0, SEEK_SET));
    did_read(i, MUST(read(fd, buffer, some())));
    did_read(i, MUST(pread(fd, buffer, some(), 3)));
    did_read(i, MUST(readv(fd, two, 2)));
    did_read(i, MUST(preadv(fd, two, 2, 9)));
    did_read(i, MUST(pread(fd, buffer, 10, 1 << 30))); /* at the end: 0 bytes */
    if (read(-1, buffer, 10) >= 0 || write(fd, sbrk(0) + (1 << 20), 10) >= 0)
        exit(2); /* what fails moves nothing */
}

static void move(int from, int to) {
    loff_t at = 0, there = 0;
    int pipes[2];
    ssize_t n;

    n = MUST(sendfile(files[to].fd, files[from].fd, &at, some()));
    did_read(from, n), did_write(to, n);
    at = 1;
    n = MUST(copy_file_range(files[from].fd, &at, files[to].fd, &there, some(), 0));
    did_read(from, n), did_write(to, n);
    MUST(pipe(pipes));
    n = MUST(splice(files[from].fd, &at, pipes[1], NULL, some(), 0));
    did_read(from, n);
    did_write(to, MUST(splice(pipes[0], NULL, files[to].fd, &there, n, 0)));
    at = 2;
    did_read(from, n = MUST(sendfile(pipes[1], files[from].fd, &at, 4096)));
    MUST(read(pipes[0], buffer, n));
    MUST(close(pipes[0]));
    MUST(close(pipes[1]));
}

static void talk(int family, int type) {
    struct sockaddr_storage address = {.ss_family = family};
    socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int listener = socket(family, type, 0), client = socket(family, type, 0), server = listener;
    struct iovec one = {buffer, 1000};
    struct mmsghdr messages[3] = {};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    off_t at = 0;
    ssize_t n;

    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    MUST(bind(listener, (void *)&address, size));
    if (type == SOCK_STREAM)
        MUST(listen(listener, 1));
    MUST(getsockname(listener, (void *)&address, &size));
    MUST(connect(client, (void *)&address, size));
    if (type == SOCK_STREAM)
        server = MUST(accept(listener, NULL, NULL));
    for (int i = 0; i < 3; i++)
        messages[i].msg_hdr = message;
    network[1] += MUST(send(client, buffer, 777, 0));
    network[1] += MUST(write(client, buffer, 333));
    network[1] += MUST(sendmsg(client, &message, 0));
    for (int i = 0, sent = MUST(sendmmsg(client, messages, 3, 0)); i < sent; i++)
        network[1] += messages[i].msg_len;
    did_read(A, n = MUST(sendfile(client, files[A].fd, &at, 500)));
    network[1] += n;
    MUST(recv(server, buffer, 100, MSG_PEEK));
    network[0] += MUST(recv(server, buffer, 777, 0));
    network[0] += MUST(read(server, buffer, 333));
    network[0] += MUST(recvmsg(server, &message, 0));
    for (int i = 0, got = MUST(recvmmsg(server, messages, 3, MSG_WAITFORONE, NULL)); i < got; i++)
        network[0] += messages[i].msg_len;
    MUST(close(client));
    MUST(close(server));
}

int main(int argc, char **argv) {
    size_t size = FILES * sizeof(*files) + 2 * sizeof(*network);
    int pair[2], unnamed, fd;

    if (argc != 3)
        return 3;
    seed = atoi(argv[2]);
    files = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    network = (void *)(files + FILES);
    for (int i = A; i <= C; i++) {
        sprintf(files[i].path, "%s/%c", argv[1], 'a' + i);
        files[i].fd = MUST(open(files[i].path, O_RDWR | O_CREAT, 0600));
        files[i].opens++;
        use(i);
    }
    fd = files[PROC].fd = MUST(open("/proc/version", O_RDONLY));
    sprintf(files[PROC].path, "/proc/version");
    files[PROC].opens++;
    did_read(PROC, MUST(read(fd, buffer, sizeof(buffer))));
    did_read(PROC, MUST(read(fd, buffer, sizeof(buffer))));

    move(A, B);
    files[A].fd = MUST(dup(files[A].fd)); /* the same file by other numbers */
    files[B].fd = MUST(fcntl(files[B].fd, F_DUPFD, 500));
    use(A);
    for (int i = 0; i < 3; i++)
        if (!MUST(fork())) { /* descriptors that are shared */
            seed += i;
            use(A), use(B), move(B, A);
            return 0;
        }
    for (int status; wait(&status) > 0;)
        if (status)
            return 4;
    if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, files[C].fd, 0) == MAP_FAILED)
        return 5;
    files[C].maps++;
    MUST(rename(files[B].path, "/dev/null/x") < 0 ? 0 : -1);
    sprintf(buffer, "%s/renamed", argv[1]);
    MUST(rename(files[B].path, buffer));
    MUST(unlink(files[C].path));
    use(B), use(C);
    unnamed = MUST(open(argv[1], O_TMPFILE | O_RDWR, 0600));
    MUST(write(unnamed, buffer, 12345));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(write(pair[0], buffer, 99));
    MUST(read(pair[1], buffer, 99));
    talk(AF_INET, SOCK_STREAM), talk(AF_INET, SOCK_DGRAM);
    talk(AF_INET6, SOCK_STREAM), talk(AF_INET6, SOCK_DGRAM);
    for (int i = 0; i < FILES; i++)
        printf("%s %lu %lu %lu %lu %lu %lu\n", files[i].path, files[i].read, files[i].written,
               files[i].read_calls, files[i].written_calls, files[i].opens, files[i].maps);
    printf("network %lu %lu\n", network[0], network[1]);
    return 0;
}
