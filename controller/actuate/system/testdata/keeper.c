// SPDX-License-Identifier: Apache-2.0
// Has one of everything that can be changed from outside, and says from inside
// what it sees.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int tcp, listener, local[2], ends[2], storming;

static void *idle(void *unused) {
    for (;;)
        pause();
    return unused;
}

static void *brief(void *unused) {
    usleep(2000);
    return unused;
}

static void spawn(void *(*run)(void *)) {
    pthread_t t;
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&a, 65536);
    if (pthread_create(&t, &a, run, NULL) != 0)
        usleep(1000);
}

static void *storm(void *unused) {
    while (__atomic_load_n(&storming, __ATOMIC_RELAXED)) {
        spawn(brief);
        usleep(100);
    }
    return unused;
}

enum { block = 1 << 20 };

static void *pump(void *unused) {
    char *data = calloc(1, block);
    while (write(ends[1], data, block) == block)
        ;
    return unused;
}

static void *consume(void *unused) {
    char *data = malloc(block);
    while (read(ends[0], data, block) > 0)
        ;
    return unused;
}

static void open_all(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&a, n) || listen(listener, 1) ||
        getsockname(listener, (void *)&a, &n) || connect(tcp, (void *)&a, n) ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, local) || pipe(ends))
        exit(1);
}

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t n = sizeof value;
    getsockopt(fd, level, name, &value, &n);
    return value;
}

int main(void) {
    char line[64], name[16];
    open_all();
    for (int i = 0; i < 3; i++)
        spawn(idle);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        int a = 0, b = 0, c = 0;
        if (sscanf(line, "%15s %d %d %d", name, &a, &b, &c) < 1)
            continue;
        if (!strcmp(name, "fds"))
            printf("%d %d %d %d\n", tcp, listener, local[0], ends[0]);
        else if (!strcmp(name, "option"))
            printf("%d\n", option(a, b, c));
        else if (!strcmp(name, "set"))
            printf("%d\n", setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &a, sizeof a));
        else if (!strcmp(name, "pipe"))
            printf("%d\n", fcntl(ends[0], F_GETPIPE_SZ));
        else if (!strcmp(name, "fill"))
            printf("%d\n", write(ends[1], calloc(1, 60000), 60000) == 60000);
        else if (!strcmp(name, "drain"))
            printf("%d\n", read(ends[0], malloc(60000), 60000) == 60000);
        else if (!strcmp(name, "pump")) { // a pipeline that never pauses
            spawn(pump);
            spawn(consume);
            puts("ok");
        } else if (!strcmp(name, "dup"))
            printf("%d\n", dup2(a, b));
        else if (!strcmp(name, "other")) { // another socket under this number
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            printf("%d\n", dup2(fd, a));
            close(fd);
        } else if (!strcmp(name, "spawn")) {
            for (int i = 0; i < a; i++)
                spawn(idle);
            puts("ok");
        } else if (!strcmp(name, "storm")) {
            __atomic_store_n(&storming, a, __ATOMIC_RELAXED);
            if (a)
                spawn(storm);
            puts("ok");
        } else if (!strcmp(name, "exec")) {
            execl("/proc/self/exe", "keeper", (char *)NULL);
        } else if (!strcmp(name, "file")) { // a file of so many bytes, open for writing
            int fd = memfd_create("file", MFD_CLOEXEC);
            printf("%d\n", ftruncate(fd, a) == 0 ? fd : -1);
        } else if (!strcmp(name, "lock")) { // so many bytes into memory
            printf("%d\n", mlock(calloc(1, a), a) == 0);
        } else if (!strcmp(name, "memory")) {
            char *m =
                mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // small pages, whatever the node prefers
            for (long i = 0; i < 8 << 20; i += 4096)
                m[i] = 1;
            prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
            printf("%lx\n", (unsigned long)m);
        }
    }
    return 0;
}
