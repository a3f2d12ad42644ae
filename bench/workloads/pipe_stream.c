/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline of two processes for SECONDS: one writes 1 MB at a time into a pipe,
 * the other one reads it. With BYTES, the pipe is made to hold that many. An
 * iteration is a megabyte that has arrived.
 *
 *     pipe_stream SECONDS [BYTES]
 */
#define _GNU_SOURCE
#include "stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char block[1 << 20];

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    int end[2];
    pid_t writer;

    if (pipe(end) < 0 || (argc > 2 && fcntl(end[1], F_SETPIPE_SZ, atoi(argv[2])) < 0)) {
        perror("pipe");
        return 1;
    }
    writer = fork();
    if (writer < 0) {
        perror("fork");
        return 1;
    }
    if (writer == 0) {
        close(end[0]);
        stream_write(end[1], block, sizeof(block));
    }
    close(end[1]);
    stream_read(end[0], block, sizeof(block), seconds);
    close(end[0]);
    waitpid(writer, NULL, 0);
    return 0;
}
