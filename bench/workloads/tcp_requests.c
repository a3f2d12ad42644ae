/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests over a TCP connection of the loopback for SECONDS: a client writes
 * head and body of each with a call of their own and reads the answer. With
 * "nodelay", its small segments are sent at once. An iteration is a request.
 *
 *     tcp_requests SECONDS [nodelay]
 */
#include "workload.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAD = 16, BODY = 48, ANSWER = 32 };

static int read_all(int from, char *to, size_t bytes) {
    while (bytes > 0) {
        ssize_t n = read(from, to, bytes);

        if (n <= 0)
            return 0;
        to += n;
        bytes -= (size_t)n;
    }
    return 1;
}

static void serve(int listener) {
    char request[HEAD + BODY], answer[ANSWER] = {0};
    int client = accept(listener, NULL, NULL);

    while (read_all(client, request, sizeof(request)))
        if (write(client, answer, sizeof(answer)) < 0)
            break;
    _exit(0);
}

static void request_for(int server, double seconds) {
    struct progress p = progress_begin();
    char message[HEAD + BODY] = {0}, answer[ANSWER];
    uint64_t requests = 0;

    do {
        if (write(server, message, HEAD) < 0 || write(server, message + HEAD, BODY) < 0 ||
            !read_all(server, answer, sizeof(answer)))
            break;
    } while (progress_step(&p, ++requests) < seconds);
    progress_end(&p, requests);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    int nodelay = argc > 2 && strcmp(argv[2], "nodelay") == 0;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM, 0), server;
    pid_t child;

    if (bind(listener, (void *)&a, size) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (void *)&a, &size) < 0 || (child = fork()) < 0) {
        perror("tcp_requests");
        return 1;
    }
    if (child == 0)
        serve(listener);
    server = socket(AF_INET, SOCK_STREAM, 0); /* the child must not have it, too */
    if (connect(server, (void *)&a, size) < 0 ||
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay)) < 0) {
        perror("connect");
        kill(child, SIGKILL);
        return 1;
    }
    request_for(server, seconds);
    close(server);
    waitpid(child, NULL, 0);
    return 0;
}
