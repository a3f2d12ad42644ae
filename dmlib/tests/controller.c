/* SPDX-License-Identifier: Apache-2.0 */
#include "controller.h"

#include "attune/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAIL: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- the memory file --------------------------------------------------- */

static uint64_t align(uint64_t n) { return (n + 4095) / 4096 * 4096; }

static void fill_header(const struct controller *c, struct attune_header *h) {
    h->magic = ATTUNE_ABI_MAGIC;
    h->version = ATTUNE_ABI_VERSION;
    h->header_size = sizeof(*h);
    h->point_count = ATTUNE_POINT_COUNT;
    h->slot_count = c->slots ? c->slots : 64;
    h->ring_count = c->rings ? c->rings : 16;
    h->ring_records = c->records ? c->records : 1 << 14;
    h->control_offset = align(sizeof(*h));
    h->mailbox_offset =
        align(h->control_offset + ATTUNE_POINT_COUNT * sizeof(struct attune_point_control));
    h->slot_offset =
        align(h->mailbox_offset + ATTUNE_MAILBOX_COUNT * sizeof(struct attune_command));
    h->ring_offset = align(h->slot_offset + (h->slot_count + 1) * sizeof(struct attune_slot));
    h->total_size = align(h->ring_offset + (uint64_t)h->ring_count * h->ring_records *
                                               sizeof(struct attune_record)) +
                    align(c->padding);
    h->epoch = 1;
}

static int make_file(const struct controller *c, struct process *p) {
    struct attune_header header = {0};
    fill_header(c, &header);
    int fd = memfd_create(ATTUNE_MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)header.total_size) != 0)
        fail("memory file: %s", strerror(errno));
    if (c->manner != MANNER_UNSEALED)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    p->header = mmap(NULL, header.total_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p->header == MAP_FAILED)
        fail("map memory file: %s", strerror(errno));
    memcpy(p->header, &header, sizeof(header));
    for (unsigned i = 0; i < ATTUNE_POINT_COUNT; i++)
        control_of(p, i)->max_value = UINT64_MAX;
    if (c->manner == MANNER_BAD_MAGIC)
        p->header->magic++;
    if (c->manner == MANNER_BAD_SIZE)
        p->header->ring_count += 1u << 20;
    return fd;
}

/* ---- the gate ---------------------------------------------------------- */

static void send_welcome(const struct controller *c, const struct process *p, int fd, int file) {
    struct attune_welcome welcome = {
        .magic = ATTUNE_ABI_MAGIC,
        .version = ATTUNE_ABI_VERSION,
        .status = c->manner == MANNER_REFUSE ? ATTUNE_WELCOME_REFUSED : ATTUNE_WELCOME_OK,
        .total_size = p->header->total_size,
    };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
    struct iovec part = {.iov_base = &welcome, .iov_len = sizeof(welcome)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (c->manner != MANNER_REFUSE) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.bytes);
    }
    sendmsg(fd, &message, MSG_NOSIGNAL);
}

static bool receive(int fd, void *message, size_t size) {
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    return poll(&entry, 1, 2000) == 1 && recv(fd, message, size, 0) == (ssize_t)size;
}

static void publish(struct controller *c, struct process *p) {
    pthread_mutex_lock(&c->lock);
    if (c->count < CONTROLLER_PROCESSES)
        c->processes[c->count++] = p;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void serve(struct controller *c, int fd) {
    struct process *p = calloc(1, sizeof(*p));
    if (!receive(fd, &p->hello, sizeof(p->hello)) || p->hello.magic != ATTUNE_ABI_MAGIC)
        fail("no hello");
    if (c->manner == MANNER_SILENT) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        poll(&entry, 1, 2000); /* until it hangs up */
        publish(c, p);
        return;
    }
    int file = make_file(c, p);
    send_welcome(c, p, fd, file);
    close(file);
    if (c->manner != MANNER_REFUSE)
        receive(fd, &p->ready, sizeof(p->ready));
    if (c->place != NULL && p->ready.magic != 0)
        c->place(c, p);
    if (!c->unhooked && p->ready.magic != 0 && p->ready.status == ATTUNE_READY_OK)
        lead_hooks(p);
    struct attune_go go = {.magic = ATTUNE_ABI_MAGIC};
    if (c->manner == MANNER_NO_GO) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        poll(&entry, 1, 2000);
        publish(c, p);
        return;
    }
    publish(c, p); /* first, for it may end at once */
    send(fd, &go, sizeof(go), MSG_NOSIGNAL);
}

static void *serve_all(void *data) {
    struct controller *c = data;
    for (;;) {
        int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        serve(c, fd);
        close(fd);
    }
}

/* ---- forked children ---------------------------------------------------- */

/* What a status file says of seccomp: modes, and how many filters. */
static void read_filters(int pid, char *text, size_t size) {
    char path[40], line[200];
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "Seccomp", 7) == 0)
            strncat(text, line, size - strlen(text) - 1);
    if (file != NULL)
        fclose(file);
}

static bool as_free_as_we(int pid) {
    char own[200], other[200];
    read_filters(getpid(), own, sizeof(own));
    read_filters(pid, other, sizeof(other));
    return strcmp(own, other) == 0;
}

#define LOOKS_AT_ONE_CHILD 20

/* Answers a child that asks. One that does not go on has ended, or sleeps. */
static void answer_child(struct process *p) {
    struct attune_header *header = p->header;
    uint64_t word = __atomic_load_n(&header->child, __ATOMIC_ACQUIRE), answer = word;
    p->looks = word == p->child ? p->looks + 1 : 0;
    p->child = word;
    if (word != ATTUNE_CHILD_NONE)
        __atomic_store_n(&p->asked, true, __ATOMIC_RELAXED);
    if (p->looks > LOOKS_AT_ONE_CHILD)
        answer = ATTUNE_CHILD_NONE;
    else
        switch ((uint32_t)word) {
        case ATTUNE_CHILD_ASKS:
            answer += ATTUNE_CHILD_ATTENDED - ATTUNE_CHILD_ASKS;
            break;
        case ATTUNE_CHILD_WAITS:
            answer += (as_free_as_we((int)(word >> 32)) ? ATTUNE_CHILD_MAY : ATTUNE_CHILD_MAY_NOT) -
                      ATTUNE_CHILD_WAITS;
            break;
        }
    __atomic_compare_exchange_n(&header->child, &word, answer, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

/* A child that has ended just now is not seen yet. */
bool child_has_asked(struct process *p) {
    return __atomic_load_n(&p->header->child, __ATOMIC_ACQUIRE) != ATTUNE_CHILD_NONE ||
           __atomic_load_n(&p->asked, __ATOMIC_RELAXED);
}

#define BEAT_ROUNDS 10

static void *answer_children(void *data) {
    struct controller *c = data;
    for (unsigned round = 0; !__atomic_load_n(&c->over, __ATOMIC_ACQUIRE); round++) {
        poll(NULL, 0, 1);
        pthread_mutex_lock(&c->lock);
        for (int i = 0; i < c->count; i++) {
            if (c->processes[i]->header == NULL)
                continue;
            answer_child(c->processes[i]);
            if (round % BEAT_ROUNDS == 0)
                __atomic_add_fetch(&c->processes[i]->header->beat, 1, __ATOMIC_RELAXED);
        }
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

void controller_start(struct controller *c) {
    strcpy(c->directory, "/tmp/attune-dmlib-XXXXXX");
    if (mkdtemp(c->directory) == NULL)
        fail("make a directory: %s", strerror(errno));
    snprintf(c->socket, sizeof(c->socket), "%s/gate.sock", c->directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, c->socket);
    c->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(c->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(c->listener, 64) != 0)
        fail("listen: %s", strerror(errno));
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (pthread_create(&c->thread, NULL, serve_all, c) != 0 ||
        pthread_create(&c->nurse, NULL, answer_children, c) != 0)
        fail("start a thread");
}

void controller_stop(struct controller *c) {
    shutdown(c->listener, SHUT_RDWR);
    __atomic_store_n(&c->over, true, __ATOMIC_RELEASE);
    pthread_join(c->thread, NULL);
    pthread_join(c->nurse, NULL);
    close(c->listener);
    unlink(c->socket);
    rmdir(c->directory);
    for (int i = 0; i < c->count; i++) {
        if (c->processes[i]->header != NULL)
            munmap(c->processes[i]->header, c->processes[i]->header->total_size);
        free(c->processes[i]);
    }
}

struct process *controller_process(struct controller *c, int n) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    pthread_mutex_lock(&c->lock);
    while (c->count <= n)
        if (pthread_cond_timedwait(&c->changed, &c->lock, &until) != 0)
            fail("process %d never came to the gate", n);
    struct process *p = c->processes[n];
    pthread_mutex_unlock(&c->lock);
    return p;
}

/* ---- programs ---------------------------------------------------------- */

void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* it is gone already */
}

static void write_filters(char *number, size_t size) {
    struct attune_filters filters = {0};
    char text[200];
    read_filters(getpid(), text, sizeof(text));
    for (const char *at = text; *at != '\0'; at++)
        attune_count_filters(&filters, *at);
    snprintf(number, size, "%u", filters.count);
}

pid_t spawn(const char *library, const struct controller *c, char *const argv[], const char *extra,
            int *output_fd) {
    int ends[2] = {-1, -1};
    char filters[16];
    write_filters(filters, sizeof(filters));
    if (output_fd != NULL && pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe: %s", strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        die_with(parent);
        if (output_fd != NULL)
            dup2(ends[1], 1);
        if (library != NULL)
            setenv("LD_PRELOAD", library, 1);
        if (c != NULL) {
            setenv("ATTUNE_SOCKET", c->socket, 1);
            setenv("ATTUNE_FILTERS", filters, 1);
        }
        if (extra != NULL)
            putenv((char *)extra);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (output_fd != NULL) {
        close(ends[1]);
        *output_fd = ends[0];
    }
    return pid;
}

void read_all(int fd, char *text, size_t size) {
    size_t length = 0;
    ssize_t n;
    while (length < size - 1 && (n = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(fd);
}

int finish(pid_t pid) {
    int status = -1;
    for (double end = now_seconds() + WAIT_SECONDS; now_seconds() < end;) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        poll(NULL, 0, 1);
    }
    kill(pid, 9);
    fail("process %d hangs", pid);
}
