/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread for each of the system calls that have a timeout and
 * fail when their thread is stopped, or are restarted by the kernel. Each must
 * end as it does when nobody looks. With an argument one more thread sends them
 * signals all the time that the program discards. */
#define _GNU_SOURCE
#include "target.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define MILLISECONDS 30

static const struct timespec timeout = {.tv_nsec = MILLISECONDS * 1000000L};
static int pair[2], full[2], listener, semaphore, epoll;
static mqd_t queue;
static aio_context_t context;

static void must(const char *call, long result, long want, int error) {
    int got = errno;
    if (result == want && (want >= 0 || got == error))
        return;
    fprintf(stderr, "%s: %ld, errno %d\n", call, result, got);
    is_wrong();
}

static void in_recv(void) {
    char byte;
    must("recv", recv(pair[0], &byte, 1, 0), -1, EAGAIN);
}

static void in_read(void) {
    char byte;
    must("read", read(pair[0], &byte, 1), -1, EAGAIN);
}

static void in_accept(void) { must("accept", accept(listener, NULL, NULL), -1, EAGAIN); }

static void in_semtimedop(void) {
    struct sembuf down = {0, -1, 0};
    must("semtimedop", semtimedop(semaphore, &down, 1, &timeout), -1, EAGAIN);
}

static void in_sigtimedwait(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    must("sigtimedwait", sigtimedwait(&set, NULL, &timeout), -1, EAGAIN);
}

static void in_epoll_wait(void) {
    struct epoll_event event;
    must("epoll_wait", epoll_wait(epoll, &event, 1, MILLISECONDS), 0, 0);
}

static void in_epoll_pwait(void) {
    struct epoll_event event;
    sigset_t set;
    sigfillset(&set);
    must("epoll_pwait", epoll_pwait(epoll, &event, 1, MILLISECONDS, &set), 0, 0);
}

static void in_poll(void) { must("poll", poll(NULL, 0, MILLISECONDS), 0, 0); }

static void in_ppoll(void) { must("ppoll", ppoll(NULL, 0, &timeout, NULL), 0, 0); }

static void in_nanosleep(void) { must("nanosleep", nanosleep(&timeout, NULL), 0, 0); }

static void in_io_getevents(void) {
    struct io_event event;
    struct timespec wait = timeout;
    must("io_getevents", syscall(SYS_io_getevents, context, 1L, 1L, &event, &wait), 0, 0);
}

static void in_recvmsg(void) {
    struct msghdr message = {0};
    must("recvmsg", recvmsg(pair[0], &message, 0), -1, EAGAIN);
}

static void in_recvmmsg(void) {
    struct mmsghdr message = {0};
    must("recvmmsg", recvmmsg(pair[0], &message, 1, 0, NULL), -1, EAGAIN);
}

static void in_send(void) { must("send", send(full[0], "", 1, MSG_NOSIGNAL), -1, EAGAIN); }

static void in_write(void) { must("write", write(full[0], "", 1), -1, EAGAIN); }

static void in_select(void) {
    struct timeval wait = {.tv_usec = MILLISECONDS * 1000};
    must("select", select(0, NULL, NULL, NULL, &wait), 0, 0);
}

static void in_pselect(void) {
    must("pselect", pselect(0, NULL, NULL, NULL, &timeout, NULL), 0, 0);
}

/* The time at which a call that was given one gives up. */
static struct timespec later(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += timeout.tv_nsec;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    return at;
}

static void in_clock_nanosleep(void) {
    struct timespec at = later(CLOCK_MONOTONIC);
    must("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL), 0, 0);
}

static void in_sem_timedwait(void) {
    struct timespec at = later(CLOCK_REALTIME);
    sem_t none;
    sem_init(&none, 0, 0);
    must("sem_timedwait", sem_timedwait(&none, &at), -1, ETIMEDOUT);
}

static void in_mq_timedreceive(void) {
    struct timespec at = later(CLOCK_REALTIME);
    char message[8];
    must("mq_timedreceive", mq_timedreceive(queue, message, sizeof(message), NULL, &at), -1,
         ETIMEDOUT);
}

static void *thread_of(void *call) { return forever((void (*)(void))call); }

#define CALLS 20
static pthread_t threads[CALLS];

/* Signals of the whole process would not do: the kernel wakes one thread for such a
 * signal, and another one may take it. */
static void *waves(void *unused) {
    for (;;) {
        for (int i = 0; i < CALLS; i++) {
            pthread_kill(threads[i], SIGWINCH); /* comes to nothing by default */
            pthread_kill(threads[i], SIGUSR1);  /* is ignored */
        }
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    return unused;
}

/* Makes the semaphore, which the kernel would keep when the program is killed. */
static int make_semaphore(void) {
    int id = semget(IPC_PRIVATE, 1, 0600), life[2];
    if (id < 0 || pipe(life) != 0)
        return -1;
    pid_t child = fork();
    if (child != 0)
        return child < 0 ? -1 : id;
    for (int i = 0; i < 3; i++)
        close(i);
    close(life[1]);
    while (read(life[0], life, sizeof(life)) != 0) /* until the program has ended */
        ;
    semctl(id, 0, IPC_RMID);
    _exit(0);
}

/* Makes a message queue that ends with the program. */
static mqd_t make_queue(void) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[32];
    snprintf(name, sizeof(name), "/attune-timeouts-%d", getpid());
    mqd_t made = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    mq_unlink(name);
    return made;
}

int main(int argc, char **argv) {
    void (*calls[CALLS])(void) = {in_recv,          in_read,           in_accept,
                                  in_semtimedop,    in_sigtimedwait,   in_epoll_wait,
                                  in_epoll_pwait,   in_poll,           in_ppoll,
                                  in_nanosleep,     in_io_getevents,   in_recvmsg,
                                  in_recvmmsg,      in_send,           in_write,
                                  in_select,        in_pselect,        in_clock_nanosleep,
                                  in_sem_timedwait, in_mq_timedreceive};
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct timeval most = {.tv_usec = MILLISECONDS * 1000};
    pthread_t waving;

    signal(SIGUSR1, SIG_IGN);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&any, sizeof(any));
    listen(listener, 1);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    socketpair(AF_UNIX, SOCK_STREAM, 0, full);
    setsockopt(full[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    while (send(full[0], "", 1, MSG_DONTWAIT) == 1)
        ;
    queue = make_queue();
    semaphore = make_semaphore();
    epoll = epoll_create1(0);
    if (semaphore < 0 || queue < 0 || syscall(SYS_io_setup, 1U, &context) != 0)
        is_wrong();
    for (int i = 0; i < CALLS; i++)
        if (pthread_create(&threads[i], NULL, thread_of, (void *)calls[i]) != 0)
            is_wrong();
    if (argc > 1 && pthread_create(&waving, NULL, waves, NULL) != 0)
        is_wrong();
    return target_serve(argv);
}
