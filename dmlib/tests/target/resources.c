/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, descriptors, libraries and memory. */
#include "target.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* pairs COUNT */
static void pairs(void) { lock_pairs(&own, number[0]); }

/* open: descriptors are what they would have been */
static void open_first(void) {
    int fd = open("/dev/null", O_RDONLY);
    printf("%d\n", fd);
}

/* closeall PAIRS: a daemon's start */
static void close_all(void) {
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    lock_pairs(&own, number[0]);
    CHECK(open("/dev/null", O_RDONLY) == 3);
}

#ifndef STATIC

/* dlopen COUNT: in a library that came late */
static void load(void) {
    const char *path = getenv("PLUGIN");
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    void (*allocate)(long);
    *(void **)&allocate = dlsym(library, "plugin_allocate");
    CHECK(allocate != NULL);
    allocate(number[0]);
    CHECK(dlclose(library) == 0);
}

#endif

/* What fortified programs call. */
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t capacity);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off_t offset, size_t capacity);

/* io COUNT: read and write in all their forms, counted by the test */
static void io(void) {
    char text[64];
    int fd = open("/dev/zero", O_RDWR);
    for (long i = 0; i < number[0]; i++) {
        CHECK(read(fd, text, 10) == 10);
        CHECK(pread(fd, text, 20, 0) == 20);
        CHECK(__pread_chk(fd, text, 3, 0, sizeof(text)) == 3);
        CHECK(__pread64_chk(fd, text, 4, 0, sizeof(text)) == 4);
        CHECK(write(fd, text, 30) == 30);
        CHECK(pwrite(fd, text, 40, 0) == 40);
        errno = 0;
        CHECK(read(-1, text, 1) == -1 && errno == EBADF);
    }
}

/* heap COUNT: every way to get memory */
static void heap(void) {
    for (long i = 0; i < number[0]; i++) {
        void *place = NULL;
        char *block = calloc(10, 11);
        for (int at = 0; at < 110; at++)
            CHECK(block[at] == 0);
        memset(block, 1, 110);
        block = realloc(block, 5000);
        CHECK(block != NULL && block[109] == 1);
        free(block);
        block = aligned_alloc(256, 512);
        CHECK((unsigned long)block % 256 == 0);
        free(block);
        CHECK(posix_memalign(&place, 128, 333) == 0 && (unsigned long)place % 128 == 0);
        free(place);
        free(memalign(64, 100));
        free(NULL);
        errno = 0;
        CHECK(malloc((size_t)-1 / 2) == NULL && errno == ENOMEM);
        CHECK(calloc((size_t)-1, 16) == NULL);
    }
}

/* lockall MEGABYTES: goes on as `locked`, and may lock so much */
static void lock_all(void) {
    struct rlimit limit = {(rlim_t)number[0] << 20, (rlim_t)number[0] << 20};
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    CHECK(geteuid() != 0 || prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK) == 0); /* it may lock anything */
    execl(self, self, "locked", NULL);
    CHECK(false);
}

/* What has come since where there was room stays: room for 16 MB, more than may be locked. */
static void lock_again(void) {
    const size_t size = 1 << 18;
    void *blocks[64];
    CHECK(munlockall() == 0);
    for (int i = 0; i < 64; i++) {
        blocks[i] = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(blocks[i] != MAP_FAILED);
    }
    CHECK(mlockall(MCL_CURRENT) == -1);
    for (int i = 0; i < 64; i++)
        CHECK(msync(blocks[i], size, MS_ASYNC) == 0); /* ENOMEM if it has gone */
}

/* locked: locks all its memory in the middle of its work */
static void locked(void) {
    lock_pairs(&own, 10);
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    lock_pairs(&own, 10);
    pid_t child = fork();
    if (child == 0) { /* as daemons do; and it stays */
        CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
        for (int round = 0; round < 50; round++, usleep(1000))
            lock_pairs(&own, 1000);
        CHECK(malloc(100) != NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    lock_again();
}

const struct subject resource_subjects[] = {
    {"pairs", pairs},      {"open", open_first}, {"closeall", close_all},
#ifndef STATIC
    {"dlopen", load},
#endif
    {"lockall", lock_all}, {"locked", locked},   {"io", io},
    {"heap", heap},        {NULL, NULL},
};
