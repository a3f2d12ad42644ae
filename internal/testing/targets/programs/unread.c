// SPDX-License-Identifier: Apache-2.0
//
// unread HOW WHAT...: a program whose arguments, environment and the rest of whose stack's
// end cannot be read any more: whoever tries waits for whoever serves them.
//
//   unread file PATH  they are a mapping of the file
//   unread fault FD   they are pages of a userfaultfd of /dev/userfaultfd, open as FD,
//                     which nobody serves
//
// It says "ready" when they are so, and waits to be killed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static uintptr_t first, end;

static void fail(const char *what) {
    perror(what);
    _exit(1);
}

static void by_file(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0 ||
        mmap((void *)first, end - first, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
        fail(path);
}

static void by_fault(int device) {
    int fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {.start = first, .len = end - first},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
        fail("userfaultfd");
    if (mmap((void *)first, end - first, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("mmap");
    if (ioctl(fd, UFFDIO_REGISTER, &range) != 0)
        fail("register");
}

// Runs on a stack of its own, and touches nothing of the first one.
static void *work(void *argument) {
    char **argv = argument;
    char how[16], what[4096];
    snprintf(how, sizeof(how), "%s", argv[1]);
    snprintf(what, sizeof(what), "%s", argv[2]);
    if (strcmp(how, "file") == 0)
        by_file(what);
    else
        by_fault(atoi(what));
    if (write(1, "ready\n", 6) != 6)
        fail("write");
    for (;;)
        pause();
    return NULL;
}

// Has the first thread wait well below the pages that go.
static void __attribute__((noinline)) start(char **argv) {
    char distance[1 << 16];
    pthread_t thread;
    __asm__ volatile("" : : "r"(distance) : "memory");
    if (pthread_create(&thread, NULL, work, argv) != 0)
        fail("thread");
    for (;;)
        pause();
}

int main(int argc, char **argv) {
    uintptr_t page = (uintptr_t)getpagesize();
    if (argc != 3)
        return 2;
    first = (uintptr_t)argv[0] & ~(page - 1);
    // The environment and the path of the program follow, to the end of the stack.
    for (char **e = argv + argc + 1; *e != NULL; e++)
        end = (uintptr_t)*e + strlen(*e);
    end = (end + page) & ~(page - 1);
    start(argv);
}
