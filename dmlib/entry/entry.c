/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running process is made to execute so that it loads DMLib: position
 * independent, without a library, in a mapping that is gone afterwards. See
 * controller/inject.
 *
 * entry_begin runs in a thread of the program that is stopped meanwhile. Where
 * it may, it only starts a thread, which does the work at leisure, with all
 * signals but faults blocked and a descriptor table of its own: what it opens the program
 * never sees, what the program closes it does not miss.
 */
#include <linux/close_range.h>
#include <linux/memfd.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "../src/arch_x86_64.h"
#include "../src/signals.h"
#include "attune/dmlib_attach.h"
#include "offsets.h"

#define HIDDEN __attribute__((visibility("hidden")))

#define call(number, a, b, c, d)                                                                   \
    dm_syscall6(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

_Static_assert(offsetof(struct attune_entry, base) == ENTRY_BASE, "see start_x86_64.S");
_Static_assert(offsetof(struct attune_entry, size) == ENTRY_SIZE, "see start_x86_64.S");
_Static_assert(offsetof(struct attune_entry, frame) == ENTRY_FRAME, "see start_x86_64.S");
_Static_assert(offsetof(struct attune_entry, unmap) == ENTRY_UNMAP, "see start_x86_64.S");

#define ERROR_INVALID 22
#define ERROR_TIMEOUT 110

#define BLOCK 0      /* SIG_BLOCK */
#define UNBLOCK 1    /* SIG_UNBLOCK */
#define BLOCK_ONLY 2 /* SIG_SETMASK */
#define DETACHED 1   /* PTHREAD_CREATE_DETACHED */
#define LOAD_NOW 2   /* RTLD_NOW */
#define THREAD_STACK (256u << 10)

#define WAIT_NANOSECONDS 20000
#define MILLISECOND 1000000

HIDDEN void entry_begin(struct attune_entry *entry);
HIDDEN void entry_work(struct attune_entry *entry);
HIDDEN void *entry_thread(void *entry);

typedef void *(*open_function)(const char *, int);
typedef void *(*symbol_function)(void *, const char *);
typedef const char *(*message_function)(void);
typedef int (*attributes_function)(void *);
typedef int (*detached_function)(void *, int);
typedef int (*stack_function)(void *, size_t);
typedef int (*create_function)(uint64_t *, const void *, void *(*)(void *), void *);
typedef uint64_t (*code_function)(void);
typedef int (*attach_function)(struct attune_attach *);

/* The answer is complete before the state says so. */
static void publish(struct attune_entry *entry, uint32_t state) {
    __atomic_store_n(&entry->state, state, __ATOMIC_RELEASE);
}

static void fail(struct attune_entry *entry, uint32_t step, long error) {
    entry->step = step;
    entry->error = (int32_t)error;
}

static uint64_t now(void) {
    struct timespec time = {0};
    call(SYS_clock_gettime, CLOCK_MONOTONIC, &time, 0, 0);
    return (uint64_t)time.tv_sec * 1000 * MILLISECOND + (uint64_t)time.tv_nsec;
}

/* Until the controller has come so far. It cannot wake a thread of another
 * process, so that this looks; and may be dead, so that this ends. Not by
 * nanosleep(2): it would make the kernel forget how a timed system call that the
 * thread was taken out of goes on. */
static int await(struct attune_entry *entry, uint32_t go) {
    uint64_t until = now() + (uint64_t)entry->milliseconds * MILLISECOND;
    while (__atomic_load_n(&entry->go, __ATOMIC_ACQUIRE) < go) {
        if (now() > until)
            return 0;
        struct timespec pause = {.tv_nsec = WAIT_NANOSECONDS};
        call(SYS_ppoll, 0, 0, &pause, 0);
    }
    return 1;
}

/* Kernels before 6.3 do not know whether a file is to be executed. */
static int32_t memory_file(struct attune_entry *entry, const char *name, uint64_t executable) {
    const uint64_t flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    long fd = call(SYS_memfd_create, name, flags | executable, 0, 0);
    if (fd == -ERROR_INVALID)
        fd = call(SYS_memfd_create, name, flags, 0, 0);
    if (fd < 0)
        fail(entry, ATTUNE_ENTRY_FILES, -fd);
    return (int32_t)fd;
}

static int make_files(struct attune_entry *entry) {
    /* Linux 6.3: MFD_NOEXEC_SEAL, MFD_EXEC. The slash makes the base name of
     * the mapping that of the library. */
    entry->memory = memory_file(entry, "attune-dm", 8u);
    if (entry->memory < 0)
        return 0;
    if (entry->from_memory != 0 &&
        (entry->library = memory_file(entry, "/libattune-dm.so", 0x10u)) < 0)
        return 0;
    publish(entry, ATTUNE_ENTRY_FILES_MADE);
    if (await(entry, ATTUNE_ENTRY_GO_FILLED))
        return 1;
    fail(entry, ATTUNE_ENTRY_WAIT, ERROR_TIMEOUT);
    return 0;
}

/* The loader knows a library by the name it was opened with: one that no
 * program would give to a file of its own. */
static const char *name_of_descriptor(char *buffer, int32_t fd) {
    static const char prefix[] = "/proc/./thread-self/fd/";
    char digits[12];
    unsigned count = 0, at = 0;
    do
        digits[count++] = (char)('0' + fd % 10);
    while ((fd /= 10) != 0);
    for (const char *c = prefix; *c != '\0'; c++)
        buffer[at++] = *c;
    while (count > 0)
        buffer[at++] = digits[--count];
    buffer[at] = '\0';
    return buffer;
}

static attach_function find_attach(struct attune_entry *entry) {
    char name[64];
    if (entry->attach != 0)
        return (attach_function)entry->attach;
    const char *path =
        entry->from_memory ? name_of_descriptor(name, entry->library) : (const char *)entry->path;
    void *library = ((open_function)entry->open)(path, (int)(LOAD_NOW | entry->mode));
    void *found = NULL;
    if (library != NULL)
        found = ((symbol_function)entry->symbol)(library, "attune_dm_attach");
    if (found == NULL) {
        fail(entry, ATTUNE_ENTRY_LOAD, 0);
        if (entry->message != 0)
            entry->text = (uint64_t)((message_function)entry->message)();
    }
    return (attach_function)found;
}

static void load_and_attach(struct attune_entry *entry) {
    struct attune_attach *request = (struct attune_attach *)entry->request;
    attach_function attach = find_attach(entry);
    if (attach == NULL)
        return;
    request->memory = entry->memory;
    int error = attach(request);
    if (error != 0)
        fail(entry, ATTUNE_ENTRY_ATTACH, error);
}

static void close_file(int32_t fd) {
    if (fd >= 0)
        call(SYS_close, fd, 0, 0, 0);
}

static void work(struct attune_entry *entry) {
    entry->thread = (int32_t)call(SYS_gettid, 0, 0, 0, 0);
    entry->memory = entry->library = -1;
    if (make_files(entry))
        load_and_attach(entry);
    close_file(entry->memory);
    close_file(entry->library);
    publish(entry, ATTUNE_ENTRY_DONE);
}

static void mask_signals(int how, uint64_t mask) {
    call(SYS_rt_sigprocmask, how, &mask, 0, sizeof(mask));
}

void entry_work(struct attune_entry *entry) {
    mask_signals(BLOCK_ONLY, DM_SIGNALS_BLOCKED);
    long error = call(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE, 0);
    if (error == 0) {
        work(entry);
    } else {
        fail(entry, ATTUNE_ENTRY_FILES, -error);
        publish(entry, ATTUNE_ENTRY_DONE);
    }
    await(entry, ATTUNE_ENTRY_GO_READ);
}

static int start_thread(struct attune_entry *entry) {
    uint64_t attributes[16]; /* pthread_attr_t has 56 bytes */
    uint64_t thread;
    int error = ((attributes_function)entry->attributes)(attributes);
    if (error == 0)
        error = ((detached_function)entry->set_detached)(attributes, DETACHED);
    if (error == 0)
        error = ((stack_function)entry->set_stack)(attributes, THREAD_STACK);
    if (error == 0)
        error = ((create_function)entry->create)(&thread, attributes, entry_thread, entry);
    return error;
}

static void execute(struct attune_entry *entry) {
    entry->value = ((code_function)entry->code)();
    publish(entry, ATTUNE_ENTRY_DONE);
}

static void begin(struct attune_entry *entry) {
    if (entry->code != 0) {
        execute(entry);
        return;
    }
    if (entry->create == 0) {
        work(entry);
        return;
    }
    int error = start_thread(entry);
    if (error == 0)
        return;
    fail(entry, ATTUNE_ENTRY_THREAD, error);
    publish(entry, ATTUNE_ENTRY_DONE);
}

/* The tracer has blocked the signal of setuid(2) too. That must not be while anything
 * here may wait for a lock: the thread that called setuid holds one until all others have
 * taken the signal. Before, there is no stack for a handler, and afterwards none that
 * is certain to have room. */
void entry_begin(struct attune_entry *entry) {
    mask_signals(UNBLOCK, DM_SIGNAL_SETXID);
    begin(entry);
    mask_signals(BLOCK, DM_SIGNAL_SETXID);
}
