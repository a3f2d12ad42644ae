/* SPDX-License-Identifier: Apache-2.0 */
#include "handover.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST_BYTES = 2048 };

static int64_t now_ms(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* await waits until the socket is ready for what is wanted; -1 with errno. */
static int await(int fd, short wanted, int64_t end) {
    struct pollfd p = {.fd = fd, .events = wanted};

    for (;;) {
        int64_t left = end - now_ms();
        int n = left > 0 ? poll(&p, 1, (int)left) : 0;

        if (n > 0)
            return 0;
        if (n == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (errno != EINTR)
            return -1;
    }
}

/* open_socket connects; a service whose queue is full is as good as none. */
static int open_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int reason = errno;

        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

static int send_all(int fd, const char *text, size_t length, int64_t end) {
    while (length > 0) {
        ssize_t n = send(fd, text, length, MSG_NOSIGNAL);

        if (n > 0) {
            text += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (await(fd, POLLOUT, end) < 0)
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

/* receive_all reads until the other side closes, and ends the text with a 0. */
static int receive_all(int fd, char *text, size_t size, int64_t end) {
    size_t have = 0;

    for (;;) {
        ssize_t n = recv(fd, text + have, size - 1 - have, 0);

        if (n > 0) {
            have += (size_t)n;
            if (have == size - 1) {
                errno = EMSGSIZE;
                return -1;
            }
        } else if (n == 0) {
            text[have] = 0;
            return 0;
        } else if (errno == EAGAIN) {
            if (await(fd, POLLIN, end) < 0)
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
}

/* write_tunlets writes the names as JSON strings, or returns -1 if they are too
 * long. */
static int write_tunlets(char *to, size_t size, const char *names) {
    size_t at = 0;

    if (*names)
        to[at++] = '"';
    for (; *names; names++) {
        if (at + 5 > size) /* a comma's three bytes and the end's two */
            return -1;
        if (*names == ',') {
            memcpy(to + at, "\",\"", 3);
            at += 3;
        } else {
            to[at++] = *names;
        }
    }
    if (at > 0)
        to[at++] = '"';
    to[at] = 0;
    return 0;
}

/* write_text writes what stands between the quotes of a JSON string, or returns -1 if it
 * is too long. */
static int write_text(char *to, size_t size, const char *text) {
    size_t at = 0;

    for (; *text; text++) {
        if (at + 7 > size) /* an escape's six bytes and the end */
            return -1;
        if ((unsigned char)*text < ' ') {
            at += (size_t)snprintf(to + at, size - at, "\\u%04x", (unsigned char)*text);
            continue;
        }
        if (*text == '"' || *text == '\\')
            to[at++] = '\\';
        to[at++] = *text;
    }
    to[at] = 0;
    return 0;
}

/* write_request returns the request's length, or -1 if it is too long. */
static int write_request(char *to, size_t size, const struct task *task) {
    char tunlets[REQUEST_BYTES / 4], objective[REQUEST_BYTES / 2], body[REQUEST_BYTES];
    int n;

    if (write_tunlets(tunlets, sizeof tunlets, task->tunlets) < 0 ||
        write_text(objective, sizeof objective, task->objective) < 0)
        return -1;
    n = snprintf(body, sizeof body,
                 "{\"pid\":%d,\"uid\":%u,\"mode\":\"%s\",\"tunlets\":[%s],"
                 "\"objective\":\"%s\",\"rank\":%u,"
                 "\"job\":{\"kind\":\"slurm\",\"id\":\"%s\",\"step\":\"%s\"}}",
                 (int)task->pid, (unsigned)task->uid, task->mode, tunlets, objective,
                 (unsigned)task->rank, task->job, task->step);
    if (n < 0 || (size_t)n >= sizeof body)
        return -1;
    /* HTTP/1.0: the answer comes in one piece and ends with the connection. */
    n = snprintf(to, size,
                 "POST /v1/task HTTP/1.0\r\nHost: attuned\r\nContent-Type: application/json\r\n"
                 "Accept: text/plain\r\nContent-Length: %d\r\n\r\n%s",
                 n, body);
    return n < 0 || (size_t)n >= size ? -1 : n;
}

static int say(char answer[ANSWER_BYTES], const char *what, const char *why) {
    snprintf(answer, ANSWER_BYTES, "%s: %s", what, why);
    return -1;
}

/* read_note takes the note out of the fields of a reply. Control bytes do not come into
 * the user's terminal. */
static void read_note(const char *fields, char note[NOTE_BYTES]) {
    static const char name[] = "\r\nAttune-Note: ";
    const char *value = strstr(fields, name);
    size_t at = 0;

    if (value)
        for (value += sizeof name - 1; *value && *value != '\r' && at < NOTE_BYTES - 1; value++)
            note[at++] = (unsigned char)*value < ' ' ? ' ' : *value;
    note[at] = 0;
}

/* read_reply takes the body out of a reply; whatever is not 2xx is a refusal. */
int read_reply(char *reply, char answer[ANSWER_BYTES], char note[NOTE_BYTES]) {
    char *body = strstr(reply, "\r\n\r\n");
    int status = 0;

    note[0] = 0;
    if (sscanf(reply, "HTTP/1.%*c %d", &status) != 1 || !body)
        return say(answer, "attuned", "what it answers is not HTTP");
    *body = 0;
    read_note(reply, note);
    body += 4;
    if (strlen(body) >= ANSWER_BYTES)
        return say(answer, "attuned", "its answer is too long");
    if (status / 100 != 2) {
        body[strcspn(body, "\r\n")] = 0;
        return say(answer, "attuned refuses", body);
    }
    strcpy(answer, body);
    return 0;
}

static int exchange(const char *path, const struct task *task, int64_t end,
                    char answer[ANSWER_BYTES], char note[NOTE_BYTES]) {
    char request[REQUEST_BYTES + 256], reply[REPLY_BYTES];
    int length = write_request(request, sizeof request, task);
    int fd, result;

    if (length < 0)
        return say(answer, "attune", "the tunlets or the objective are too long");
    fd = open_socket(path);
    if (fd < 0)
        return say(answer, path, strerror(errno));
    result = send_all(fd, request, (size_t)length, end);
    if (result == 0)
        result = receive_all(fd, reply, sizeof reply, end);
    result = result < 0 ? say(answer, path, strerror(errno)) : read_reply(reply, answer, note);
    close(fd);
    return result;
}

int hand_over(const char *socket, const struct task *task, int *budget_ms,
              char answer[ANSWER_BYTES], char note[NOTE_BYTES]) {
    int64_t begin = now_ms();
    int result = exchange(socket, task, begin + *budget_ms, answer, note);

    *budget_ms -= (int)(now_ms() - begin);
    return result;
}
