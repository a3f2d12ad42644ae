/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream over a TCP connection of the loopback for SECONDS: one process writes
 * 64 KiB at a time, the other one reads. With BYTES, the writer's send buffer is
 * set to that (SO_SNDBUF); 0 leaves it to the kernel. An iteration is a megabyte
 * that has arrived.
 *
 *     tcp_stream SECONDS [BYTES]
 */
#include "stream.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char block[64 << 10];

static void send_to(struct sockaddr_in *reader, int bytes) {
    int to = socket(AF_INET, SOCK_STREAM, 0);

    if ((bytes > 0 && setsockopt(to, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0) ||
        connect(to, (void *)reader, sizeof(*reader)) < 0)
        _exit(1);
    stream_write(to, block, sizeof(block));
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM, 0), from;
    pid_t writer;

    if (bind(listener, (void *)&a, size) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (void *)&a, &size) < 0 || (writer = fork()) < 0) {
        perror("tcp_stream");
        return 1;
    }
    if (writer == 0)
        send_to(&a, argc > 2 ? atoi(argv[2]) : 0);
    from = accept(listener, NULL, NULL);
    stream_read(from, block, sizeof(block), seconds);
    close(from);
    kill(writer, SIGTERM);
    waitpid(writer, NULL, 0);
    return 0;
}
