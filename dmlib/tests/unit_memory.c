/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses that are checked, and stubs. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static uint64_t at(const void *place) { return (uint64_t)(uintptr_t)place; }

/* Not in memory that the loader protects. */
static int store(const void *place, uint64_t value, uint64_t expected, uint64_t *old) {
    return dm_memory_store_got(at(place), value, expected, false, old);
}

static void check_words(void) {
    uint64_t place = 5, got = 0;
    EXPECT_EQUAL(dm_memory_load(at(&place), &got), 0);
    EXPECT_EQUAL(got, 5);
    EXPECT_EQUAL(dm_memory_load(at(&place) + 4, &got), EINVAL);
    EXPECT_EQUAL(store((char *)&place + 1, 6, 0, &got), EINVAL);
    EXPECT_EQUAL(store(&place, 6, 4, &got), EAGAIN);
    EXPECT_EQUAL(got, 5);
    EXPECT_EQUAL(store(&place, 6, 5, &got), 0);
    EXPECT(got == 5 && place == 6);
}

static void check_protection(void) {
    uint64_t got;
    uint64_t *pages =
        mmap(NULL, 3 * DM_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *constant = pages + DM_PAGE_SIZE / 8, *none = constant + DM_PAGE_SIZE / 8;
    *constant = 5;
    mprotect(constant, DM_PAGE_SIZE, PROT_READ);
    mprotect(none, DM_PAGE_SIZE, PROT_NONE);
    EXPECT_EQUAL(dm_memory_load(at(none), &got), EFAULT);
    EXPECT_EQUAL(store(none, 1, 0, &got), EFAULT);
    EXPECT_EQUAL(store(constant, 1, 0, &got), EFAULT);
    EXPECT_EQUAL(store(pages, 1, 0, &got), 0);
    EXPECT_EQUAL(dm_memory_store_got(at(constant), 7, 4, true, &got), EAGAIN);
    EXPECT_EQUAL(dm_memory_store_got(at(constant), 7, 5, false, &got), EFAULT);
    EXPECT_EQUAL(dm_memory_store_got(at(constant), 7, 5, true, &got), 0);
    EXPECT_EQUAL(got, 5);
    EXPECT_EQUAL(*constant, 7);
    EXPECT_EQUAL(store(constant, 1, 0, &got), EFAULT); /* as before */
    EXPECT_EQUAL(dm_memory_store_got(at(none), 7, 0, true, &got), EFAULT);
    munmap(pages, 3 * DM_PAGE_SIZE);
}

static bool first_has_ended(void) {
    char text[512] = "", path[64];
    snprintf(path, sizeof(path), "/proc/%ld/stat", dm_syscall(SYS_getpid, 0));
    int fd = open(path, O_RDONLY);
    EXPECT(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return strstr(text, ") Z ") != NULL;
}

static void *access_alone(void *unused) {
    static uint64_t place = 5;
    uint64_t got = 0, copy = 0;
    while (!first_has_ended())
        sched_yield();
    EXPECT_EQUAL(dm_memory_load(at(&place), &got), 0);
    EXPECT_EQUAL(got, 5);
    EXPECT_EQUAL(store(&place, 6, 5, &got), 0);
    EXPECT_EQUAL(dm_memory_copy(&copy, at(&place), 8), 8);
    EXPECT_EQUAL(copy, 6);
    EXPECT(!dm_in_handler());
    _exit(0);
    return unused;
}

/* The first thread of a process has ended, and the others go on. A forked child is it here, where
 * the thread sanitizer permits no threads. */
static void check_without_first_thread(void) {
#ifdef __SANITIZE_THREAD__
    return;
#endif
    struct attune_header *memory = make_memory(1, 1, 8);
    int status;
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        use_memory(memory);
        EXPECT(pthread_create(&thread, NULL, access_alone, NULL) == 0);
        pthread_exit(NULL);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    free(memory);
}

/* FNV-1a, as whoever asks computes it. */
static uint64_t print_of(uint64_t print, const void *data, size_t size) {
    for (const unsigned char *byte = data; size > 0; byte++, size--)
        print = (print ^ *byte) * 0x100000001b3;
    return print;
}

static void check_origin(void) {
    struct {
        Elf64_Rela relocation;
        Elf64_Sym symbol;
        char name[ATTUNE_ORIGIN_NAME];
    } object = {.relocation = {.r_offset = 0x4018}, .symbol = {.st_name = 7}, .name = "malloc"};
    uint64_t print = print_of(0xcbf29ce484222325, &object.relocation, sizeof(object.relocation));
    print = print_of(print, &object.symbol, sizeof(object.symbol));
    struct attune_origin origin = {
        .print = print_of(print, "malloc", 6),
        .relocation = at(&object.relocation),
        .symbol = (int32_t)sizeof(object.relocation),
        .name = (int32_t)(sizeof(object.relocation) + sizeof(object.symbol)),
    };
    struct attune_origin unknown = {0}, gone = origin;
    gone.relocation = 4096;
    EXPECT(dm_origin_holds(&origin));
    EXPECT(dm_origin_holds(&unknown));
    EXPECT(!dm_origin_holds(&gone));
    object.name[0] = 'c';
    EXPECT(!dm_origin_holds(&origin)); /* another function's slot */
    object.name[0] = 'm';
    object.relocation.r_offset += 8;
    EXPECT(!dm_origin_holds(&origin)); /* another slot */
}

static void check_map(void) {
    char *pages = mmap(NULL, 3 * DM_PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t first = (at(pages) + DM_PAGE_SIZE - 1) & ~(uint64_t)(DM_PAGE_SIZE - 1), got;
    EXPECT_EQUAL(dm_memory_map(first, DM_PAGE_SIZE), EEXIST);
    munmap((void *)(uintptr_t)first, DM_PAGE_SIZE);
    EXPECT_EQUAL(dm_memory_map(first, 2 * DM_PAGE_SIZE), EEXIST);
    EXPECT_EQUAL(dm_memory_map(first + 1, DM_PAGE_SIZE), EINVAL);
    EXPECT_EQUAL(dm_memory_map(first, 0), EINVAL);
    EXPECT_EQUAL(dm_memory_map(first, DM_PAGE_SIZE), 0);
    EXPECT_EQUAL(dm_memory_load(first, &got), 0);
    EXPECT_EQUAL(store(pages, 1, 0, &got), EFAULT);
    munmap(pages, 3 * DM_PAGE_SIZE);
}

void test_memory(void) {
    check_words();
    check_protection();
    check_without_first_thread();
    check_map();
    check_origin();
}

void test_stubs(void) {
    uint64_t function = at((void *)(uintptr_t)test_memory),
             other = at((void *)(uintptr_t)test_stubs);
    EXPECT_EQUAL(dm_stub_bind(3, function), 0);
    EXPECT_EQUAL(dm_stub_bind(3, function), 0);
    EXPECT_EQUAL(dm_stub_bind(3, other), EBUSY);
    EXPECT(dm_stub_target[3] == function);
    EXPECT_EQUAL(dm_stub_bind(DM_STUB_COUNT, function), EINVAL);
    EXPECT_EQUAL(dm_stub_bind(4, DM_STUB_ENTRY), EINVAL);
    EXPECT_EQUAL(dm_stub_bind(4, DM_STUB_ENTRY + DM_STUB_SIZE * DM_STUB_COUNT - 1), EINVAL);
    EXPECT_EQUAL(dm_stub_bind(4, 64), EFAULT);
    EXPECT_EQUAL(dm_stub_code_end - dm_stub_code, DM_STUB_SIZE * DM_STUB_COUNT);
}
