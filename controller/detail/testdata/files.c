/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, uses and closes what its input says, and answers each line:
 * tcp: connect two sockets, answers with their descriptors and the listener's;
 * unix, pipe: the same, two descriptors; nodelay FD, sndbuf FD BYTES,
 * cork FD: set an option; write FD BYTES, read FD BYTES: answers how many; close
 * FD; dup FD; many N: that many pairs of sockets; closed: a socket without
 * address; udp; map MEGABYTES: memory that is used; net: a network namespace of
 * its own; user: become nobody. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(int ok, const char *what) {
    if (!ok) {
        printf("%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static void tcp(int family) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (family == AF_INET)
        memcpy(&address, &four, size = sizeof four);
    int listener = socket(family, SOCK_STREAM, 0), one = socket(family, SOCK_STREAM, 0);
    must(bind(listener, (void *)&address, size) == 0, "bind");
    must(listen(listener, 5) == 0, "listen");
    must(getsockname(listener, (void *)&address, &size) == 0, "getsockname");
    must(connect(one, (void *)&address, size) == 0, "connect");
    int two = accept(listener, NULL, NULL);
    must(two >= 0, "accept");
    printf("%d %d %d\n", one, two, listener);
}

static void many(int pairs) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < pairs; i++) {
        int pair[2];
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    }
    puts("done");
}

static void own_network(void) {
    must(unshare(CLONE_NEWNET) == 0, "unshare");
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    must(ioctl(s, SIOCSIFFLAGS, &request) == 0, "lo");
    close(s);
    puts("done");
}

static void map(size_t megabytes) {
    size_t size = megabytes << 20;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    memset(memory, 1, size);
    puts("done");
}

static void set(int fd, int level, int option, int value) {
    must(setsockopt(fd, level, option, &value, sizeof value) == 0, "setsockopt");
    puts("done");
}

static void transfer(int fd, int bytes, ssize_t (*call)(int, char *, size_t)) {
    static char data[1 << 20];
    int done = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (done < bytes) {
        ssize_t n =
            call(fd, data, bytes - done < (int)sizeof data ? (size_t)(bytes - done) : sizeof data);
        if (n <= 0)
            break;
        done += n;
    }
    printf("%d\n", done);
}

static ssize_t put(int fd, char *data, size_t size) { return write(fd, data, size); }
static ssize_t get(int fd, char *data, size_t size) { return read(fd, data, size); }

static void obey(const char *word, int a, int b) {
    int pair[2];
    if (strcmp(word, "tcp") == 0) {
        tcp(AF_INET);
    } else if (strcmp(word, "tcp6") == 0) {
        tcp(AF_INET6);
    } else if (strcmp(word, "unix") == 0) {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
        printf("%d %d\n", pair[0], pair[1]);
    } else if (strcmp(word, "pipe") == 0) {
        must(pipe(pair) == 0, "pipe");
        printf("%d %d\n", pair[0], pair[1]);
    } else if (strcmp(word, "closed") == 0) {
        printf("%d\n", socket(AF_INET, SOCK_STREAM, 0));
    } else if (strcmp(word, "udp") == 0) {
        printf("%d\n", socket(AF_INET, SOCK_DGRAM, 0));
    } else if (strcmp(word, "nodelay") == 0) {
        set(a, IPPROTO_TCP, TCP_NODELAY, 1);
    } else if (strcmp(word, "sndbuf") == 0) {
        set(a, SOL_SOCKET, SO_SNDBUF, b);
    } else if (strcmp(word, "write") == 0) {
        transfer(a, b, put);
    } else if (strcmp(word, "read") == 0) {
        transfer(a, b, get);
    } else if (strcmp(word, "close") == 0) {
        printf("%d\n", close(a));
    } else if (strcmp(word, "dup") == 0) {
        printf("%d\n", dup(a));
    } else if (strcmp(word, "many") == 0) {
        many(a);
    } else if (strcmp(word, "map") == 0) {
        map(a);
    } else if (strcmp(word, "net") == 0) {
        own_network();
    } else if (strcmp(word, "user") == 0) {
        must(setgid(65534) == 0 && setuid(65534) == 0, "setuid");
        must(prctl(PR_SET_DUMPABLE, 1) == 0, "prctl");
        puts("done");
    }
}

int main(void) {
    char line[100], word[20];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int a = 0, b = 0;
        if (sscanf(line, "%19s %d %d", word, &a, &b) >= 1)
            obey(word, a, b);
        fflush(stdout);
    }
}
