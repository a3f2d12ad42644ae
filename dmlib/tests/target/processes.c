/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: how they are started, and with what. */
#include "target.h"

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

static void work_until_killed(void) {
    signal(SIGTERM, leave);
    for (;;) {
        lock_pairs(&own, 100);
        usleep(100);
    }
}

/* fork DEPTH: each process forks the next; the last works until SIGTERM */
static void forks(void) {
    for (long i = 0; i < number[0]; i++) {
        lock_pairs(&own, 1);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child != 0) {
            int status;
            CHECK(waitpid(child, &status, 0) == child && status == 0);
            return;
        }
        /* long enough to be registered as well before forking on */
        for (int round = 0; i + 1 < number[0] && round < 50; round++) {
            lock_pairs(&own, 100);
            usleep(1000);
        }
    }
    work_until_killed();
}

/* slow: a child that seldom comes by a hook, and works until SIGTERM */
static void slow(void) {
    lock_pairs(&own, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGTERM, leave);
        for (int call = 0; call < 400; call++) {
            lock_pairs(&own, 1);
            usleep(10000);
        }
        for (;;)
            pause();
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void wait_ok(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* The inode of the memory file that is mapped; or whether one of that inode is, so that it
 * can be written. */
static unsigned long memory_file(unsigned long wanted) {
    char line[256], access[5];
    unsigned long inode, found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps) != NULL)
        if (strstr(line, "/memfd:attune-dm") != NULL &&
            sscanf(line, "%*s %4s %*s %*s %lu", access, &inode) == 2 && access[1] == 'w' &&
            (wanted == 0 || inode == wanted))
            found = inode;
    fclose(maps);
    return found;
}

/* left: a child works until it cannot write to its parent's memory file, and after that */
static void left(void) {
    unsigned long parents = memory_file(0);
    CHECK(parents != 0);
    pid_t child = fork();
    if (child == 0) {
        for (int round = 0; memory_file(parents) != 0; round++) {
            CHECK(round < 3000);
            lock_pairs(&own, 1000);
            usleep(10000);
        }
        lock_pairs(&own, 1000);
        _exit(0);
    }
    wait_ok(child);
    CHECK(memory_file(parents) != 0);
}

/* brief COUNT: children that exit at once */
static void brief(void) {
    for (long i = 0; i < number[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            lock_pairs(&own, 10);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

/* rawclone: a child that the C library does not know of */
static void raw_clone(void) {
    lock_pairs(&own, 10);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        for (int round = 0; round < 200; round++, usleep(1000))
            lock_pairs(&own, 100);
        _exit(0);
    }
    wait_ok(child);
    lock_pairs(&own, 10);
}

static _Atomic bool over;

static void *busy(void *unused) {
    pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
    while (!over) {
        lock_pairs(&mine, 10);
        free(malloc(100));
    }
    return unused;
}

/* among FORKS: children of a process whose other threads are in hooks */
static void among(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, NULL) == 0);
    for (long i = 0; i < number[0]; i++) {
        pid_t child = fork();
        for (int round = 0; round < 300 && child == 0; round++) {
            lock_pairs(&own, 10);
            free(malloc(100));
        }
        if (child == 0)
            _exit(0);
        wait_ok(child);
    }
    over = true;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* vfork: exec after vfork, and an exec that fails in between */
static void vforks(void) {
    lock_pairs(&own, 10);
    pid_t child = vfork();
    if (child == 0) {
        execl("/nonexistent", "x", NULL);
        execl(self, self, "pairs", "7", NULL);
        _exit(9);
    }
    wait_ok(child);
    lock_pairs(&own, 10);
}

/* spawn: the same by posix_spawn */
static void spawns(void) {
    char *arguments[] = {(char *)self, "pairs", "7", NULL};
    pid_t child;
    lock_pairs(&own, 10);
    CHECK(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0);
    wait_ok(child);
    lock_pairs(&own, 10);
}

/* limit MEGABYTES: goes on as `pairs 7` with so little address space */
static void limit(void) {
    struct rlimit space = {(rlim_t)number[0] << 20, (rlim_t)number[0] << 20};
    CHECK(setrlimit(RLIMIT_AS, &space) == 0);
    execl(self, self, "pairs", "7", NULL);
    CHECK(false);
}

/* environment: what children get to see */
static void environment(void) {
    fflush(stdout);
    CHECK(system("echo \"${LD_PRELOAD-none} ${ATTUNE_SOCKET+socket} ${KEPT-lost}\"") == 0);
}

const struct subject process_subjects[] = {
    {"fork", forks},
    {"left", left},
    {"brief", brief},
    {"slow", slow},
    {"rawclone", raw_clone},
    {"among", among},
    {"vfork", vforks},
    {"spawn", spawns},
    {"limit", limit},
    {"environment", environment},
    {"work", work_until_killed},
    {NULL, NULL},
};
