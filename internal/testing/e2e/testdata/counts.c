/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts TRUTH NUMBER GO: a task of a job that counts what it takes. It starts NUMBER + 2
 * processes, which compute, write and read one after the other; waits until there is a
 * file GO; and writes into TRUTH, in one line, which is counted too: processes, bytes read,
 * bytes written, CPU time in microseconds. Built statically, it reads nothing else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct counted {
    unsigned long processes, read, written;
};

/* burn computes for so many milliseconds of its own CPU time. */
static void burn(long milliseconds) {
    struct timespec now;

    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
}

static void child(struct counted *all, int number) {
    char block[5000], name[] = "/tmp/counts-XXXXXX";
    int fd = mkstemp(name);
    ssize_t n;

    if (fd < 0 || unlink(name))
        exit(2);
    memset(block, number, sizeof(block));
    for (int i = 0; i < 100 + number; i++) {
        n = write(fd, block, sizeof(block) - number);
        all->written += n > 0 ? n : 0;
        n = pread(fd, block, 1000 + number, 0);
        all->read += n > 0 ? n : 0;
    }
    burn(300 + 100 * number);
    exit(0);
}

static unsigned long micros(struct rusage *u) {
    return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000UL + u->ru_utime.tv_usec +
           u->ru_stime.tv_usec;
}

int main(int argc, char **argv) {
    struct counted *all =
        mmap(0, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct rusage own, children;
    char line[128];
    int number, fd, status;

    if (argc != 4 || all == MAP_FAILED)
        return 2;
    number = atoi(argv[2]);
    all->processes = 1;
    for (int i = 0; i < number + 2; i++) {
        pid_t pid = fork();

        if (pid == 0)
            child(all, number);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return 2;
        all->processes++;
    }
    fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    do
        usleep(50000);
    while (access(argv[3], F_OK));
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    all->written += sizeof(line);
    memset(line, ' ', sizeof(line));
    snprintf(line, sizeof(line), "%lu %lu %lu %lu", all->processes, all->read, all->written,
             micros(&own) + micros(&children));
    line[strlen(line)] = ' ';
    line[sizeof(line) - 1] = '\n';
    return write(fd, line, sizeof(line)) != sizeof(line);
}
