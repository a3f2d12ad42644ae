/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of a user who wants the services of the node to suffer.
 *
 *     hostile exit     ends at once: many are executed
 *     hostile traced   stands still, under a tracer of its user's
 *     hostile maps     has as many mappings as the kernel gives
 *     hostile garbage  takes and gives back large blocks, so that it is tuned, and
 *                      writes garbage over all memory that it shares with Attune
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, GRANULE = 64, BLOCK = 4 << 20, BLOCKS = 8 };

static int traced(const char *self) {
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(self, self, "wait", (char *)NULL);
        _exit(127);
    }
    usleep(200000); /* it is found, and its session begins */
    if (child < 0 || ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, child, NULL, NULL) != 0) {
        perror("ptrace");
        return 1;
    }
    waitpid(child, NULL, __WALL);
    for (;;)
        pause();
}

/* Neighbours differ in what they allow, so that the kernel does not make them one. */
static void maps(const char *self) {
    int fd = open(self, O_RDONLY), n = 0;

    while (mmap(NULL, PAGE, n % 2 == 0 ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE, fd, 0) !=
           MAP_FAILED)
        n++;
    for (;;)
        pause();
}

/* Writes over what is shared: mappings of files in memory that Attune has made. */
static void scribble(uint64_t *state) {
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    char line[512], rights[8];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strstr(line, "attune") == NULL ||
            sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || strcmp(rights, "rw-s") != 0)
            continue;
        for (int i = 0; i < 2000; i++) {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            memcpy((char *)from + *state % ((to - from) / GRANULE) * GRANULE + *state % 8 * 8,
                   state, sizeof(*state));
        }
    }
    if (file != NULL)
        fclose(file);
}

static void *scribbler(void *unused) {
    uint64_t state = 88172645463325252ull + (uint64_t)getpid();

    sleep(2); /* it is tuned first */
    for (;;) {
        scribble(&state);
        usleep(20000);
    }
    return unused;
}

static int garbage(void) {
    pthread_t thread;

    if (pthread_create(&thread, NULL, scribbler, NULL) != 0)
        return 1;
    for (;;) {
        char *block[BLOCKS];

        for (int i = 0; i < BLOCKS; i++) {
            block[i] = malloc(BLOCK);
            for (int at = 0; block[i] != NULL && at < BLOCK; at += PAGE)
                *(volatile char *)(block[i] + at) = 1;
        }
        for (int i = 0; i < BLOCKS; i++)
            free(block[i]);
    }
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "exit";

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(how, "traced") == 0)
        return traced(argv[0]);
    if (strcmp(how, "maps") == 0)
        maps(argv[0]);
    if (strcmp(how, "garbage") == 0)
        return garbage();
    if (strcmp(how, "wait") == 0)
        for (;;)
            pause();
    return 0;
}
