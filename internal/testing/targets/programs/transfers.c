/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread for each of the system calls that may have done a part of what
 * they are to do when they are interrupted. Half of each is done when the program is
 * ready, and the rest when it is asked whether it is right: then all must come out whole,
 * as it does when nobody looks. With "idle" the calls are some of those that wait only
 * while they have done nothing: none of them is done when the program is ready. */
#define _GNU_SOURCE
#include "target.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { BYTES = 1 << 20, MESSAGES = 4, CALLS = 12, PAGE = 4096 };

static char out[BYTES], in[CALLS][BYTES];
static int file;

/* The two ends that the calls have, and how much has gone by the other side. */
static struct way {
    const char *name;
    long (*call)(int fd, char *into);
    long want;
    int idle;   /* nothing is done before the rest is due */
    int type;   /* of the sockets; 0: a pipe */
    int pieces; /* that the other side sends; 0: it receives */
    char *into; /* where this one receives */
    int own, other;
    volatile int half;
    pthread_t caller, peer;
} ways[CALLS];
static int made;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int open_all;

static void await_opening(void) {
    pthread_mutex_lock(&lock);
    while (!open_all)
        pthread_cond_wait(&opened, &lock);
    pthread_mutex_unlock(&lock);
}

static long by_recv(int fd, char *into) { return recv(fd, into, BYTES, MSG_WAITALL); }

static long by_recvmsg(int fd, char *into) {
    struct iovec all = {into, BYTES};
    struct msghdr message = {.msg_iov = &all, .msg_iovlen = 1};
    return recvmsg(fd, &message, MSG_WAITALL);
}

static long receive_many(int fd, char *into, int flags) {
    struct iovec one = {into, BYTES};
    struct mmsghdr messages[MESSAGES];
    memset(messages, 0, sizeof(messages));
    for (int i = 0; i < MESSAGES; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1};
    return recvmmsg(fd, messages, MESSAGES, flags, NULL);
}

static long by_recvmmsg(int fd, char *into) { return receive_many(fd, into, 0); }

static long by_recvmmsg_for_one(int fd, char *into) {
    return receive_many(fd, into, MSG_WAITFORONE);
}

static long by_send(int fd, char *into) {
    (void)into;
    return send(fd, out, BYTES, 0);
}

static long by_sendmsg(int fd, char *into) {
    (void)into;
    struct iovec all = {out, BYTES};
    struct msghdr message = {.msg_iov = &all, .msg_iovlen = 1};
    return sendmsg(fd, &message, 0);
}

static long by_sendmmsg(int fd, char *into) {
    (void)into;
    struct iovec one = {out, BYTES / MESSAGES};
    struct mmsghdr messages[MESSAGES];
    memset(messages, 0, sizeof(messages));
    for (int i = 0; i < MESSAGES; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1};
    return sendmmsg(fd, messages, MESSAGES, 0) * (BYTES / MESSAGES);
}

static long by_write(int fd, char *into) {
    (void)into;
    return write(fd, out, BYTES);
}

/* All that stdio writes to a pipe at a time, which has no room for it. */
static long by_write_of_page(int fd, char *into) {
    (void)into;
    if (fcntl(fd, F_SETPIPE_SZ, PAGE) < 0 || write(fd, out, PAGE) != PAGE)
        is_wrong();
    return write(fd, out, PAGE);
}

static long by_writev(int fd, char *into) {
    (void)into;
    struct iovec halves[] = {{out, BYTES / 2}, {out, BYTES / 2}};
    return writev(fd, halves, 2);
}

static long by_pwritev2(int fd, char *into) {
    (void)into;
    struct iovec all = {out, BYTES};
    return pwritev2(fd, &all, 1, -1, 0);
}

static long by_sendfile(int fd, char *into) {
    (void)into;
    off_t from = 0;
    return sendfile(fd, file, &from, BYTES);
}

static void *calls(void *argument) {
    struct way *w = argument;
    long result = w->call(w->own, w->into);
    if (result != w->want) {
        fprintf(stderr, "%s: %ld of %ld, errno %d\n", w->name, result, w->want, errno);
        is_wrong();
    }
    return NULL;
}

/* Sends, or receives, half of it, or nothing, and the rest when that is due. */
static void *serves(void *argument) {
    static char taken[1 << 14];
    struct way *w = argument;
    long all = w->pieces ? w->pieces : w->idle ? 2 * PAGE : BYTES;
    for (long done = 0, now; done < all; done += now) {
        if (!w->half && done >= (w->idle ? 0 : all / 2)) {
            w->half = 1;
            await_opening();
        }
        now =
            w->pieces ? write(w->other, out, BYTES / 64) > 0 : read(w->other, taken, sizeof(taken));
        if (now <= 0) {
            is_wrong();
            break;
        }
    }
    return NULL;
}

static void make(struct way *w) {
    int ends[2];
    if ((w->type == 0 ? pipe(ends) : socketpair(AF_UNIX, w->type, 0, ends)) != 0)
        is_wrong();
    w->own = ends[1];
    w->other = ends[0];
    if (pthread_create(&w->caller, NULL, calls, w) != 0 ||
        pthread_create(&w->peer, NULL, serves, w) != 0)
        is_wrong();
}

static void finish(void) {
    pthread_mutex_lock(&lock);
    open_all = 1;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < made; i++) {
        pthread_join(ways[i].caller, NULL);
        close(ways[i].own); /* the other side of a call that was cut short need not wait */
        pthread_join(ways[i].peer, NULL);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        long (*call)(int fd, char *into);
        long want;
        int type, pieces, idle;
    } all[CALLS] = {
        {"recv", by_recv, BYTES, SOCK_STREAM, 64, 0},
        {"recvmsg", by_recvmsg, BYTES, SOCK_STREAM, 64, 0},
        {"recvmmsg", by_recvmmsg, MESSAGES, SOCK_DGRAM, MESSAGES, 0},
        {"send", by_send, BYTES, SOCK_STREAM, 0, 0},
        {"sendmsg", by_sendmsg, BYTES, SOCK_STREAM, 0, 0},
        {"sendmmsg", by_sendmmsg, BYTES, SOCK_STREAM, 0, 0},
        {"write", by_write, BYTES, 0, 0, 0},
        {"writev", by_writev, BYTES, 0, 0, 0},
        {"pwritev2", by_pwritev2, BYTES, 0, 0, 0},
        {"sendfile", by_sendfile, BYTES, SOCK_STREAM, 0, 0},
        {"write of a page", by_write_of_page, PAGE, 0, 0, 1},
        {"recvmmsg for one", by_recvmmsg_for_one, 1, SOCK_DGRAM, 1, 1},
    };
    int idle = argc > 1 && strcmp(argv[1], "idle") == 0;
    signal(SIGPIPE, SIG_IGN); /* of a call that was cut short */
    file = memfd_create("file", MFD_CLOEXEC);
    if (write(file, out, BYTES) != BYTES)
        is_wrong();
    for (int i = 0; i < CALLS; i++) {
        if (all[i].idle != idle)
            continue;
        ways[made] = (struct way){.name = all[i].name,
                                  .call = all[i].call,
                                  .want = all[i].want,
                                  .idle = all[i].idle,
                                  .type = all[i].type,
                                  .pieces = all[i].pieces,
                                  .into = in[made]};
        make(&ways[made++]);
    }
    for (int i = 0; i < made; i++)
        while (!ways[i].half)
            usleep(1000);
    target_stands_still = 1;
    target_look = finish;
    return target_serve(argv);
}
