// SPDX-License-Identifier: Apache-2.0
/*
 * stubborn FILE FIELD AMOUNT: a tree of five processes that does not want to end. All
 * ignore every signal that can be; one is in a process group of its own, one in
 * a session of its own, one has forked twice and lost its parent, and its child, in another
 * session again, takes more than AMOUNT of what FIELD names. Each writes to FILE, every
 * millisecond, when it was last alive. It ends after a minute, and takes no more than four times
 * AMOUNT of memory, in case that nobody ends it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 5, CHUNK = 1 << 20, BLOCK = 1 << 12, DATA = 1 << 23 };

/* Shared by all processes; times are nanoseconds of CLOCK_REALTIME. */
static struct {
    uint64_t excess; /* when more was taken than AMOUNT; 0: not yet */
    struct {
        uint64_t pid, alive;
    } process[PROCESSES];
} * shared;

static char block[BLOCK] __attribute__((aligned(BLOCK)));
static const char *field;
static double amount;
static uint64_t began;

static uint64_t now(clockid_t clock) {
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void check(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(3);
    }
}

static int is(const char *name) { return strcmp(field, name) == 0; }

static void beat(int i) {
    shared->process[i].alive = now(CLOCK_REALTIME);
    if (shared->process[i].alive - began > 60000000000ull)
        _exit(4);
}

/* exceeded notes that AMOUNT is exceeded as of now, if that was not noted before. */
static void exceeded(int is_so) {
    if (is_so && shared->excess == 0)
        shared->excess = now(CLOCK_REALTIME);
}

static void rest(int i) {
    const struct timespec millisecond = {0, 1000000};

    beat(i);
    nanosleep(&millisecond, NULL);
}

static void idle(int i) {
    for (;;)
        rest(i);
}

static void burn(int i) {
    uint64_t since = now(CLOCK_REALTIME);

    for (;;) {
        beat(i);
        if (is("cpu_seconds"))
            exceeded(now(CLOCK_PROCESS_CPUTIME_ID) / 1e9 > amount);
        else /* cores are averaged over a tenth of a second */
            exceeded(now(CLOCK_REALTIME) - since > 100000000);
    }
}

static void fill(int i) {
    double taken = 0;

    for (;;) {
        char *more = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(more != MAP_FAILED, "mmap");
        beat(i);
        if (is("memory.virtual_peak_bytes")) {
            rest(i);
        } else {
            memset(more, 1, CHUNK);
        }
        exceeded((taken += CHUNK) > amount);
        if (taken > 4 * amount)
            idle(i);
    }
}

static void multiply(int i) {
    int peak = is("processes.peak");

    for (double count = peak ? PROCESSES + 1 : PROCESSES + 2;; count++) /* one has ended */ {
        exceeded(count > amount);
        pid_t pid = fork();
        if (pid == 0) {
            if (peak)
                sleep(60);
            _exit(0);
        }
        if (!peak && pid > 0)
            waitpid(pid, NULL, 0);
        rest(i);
    }
}

/* transfer reads or writes blocks of a file, past the page cache if direct is set. */
static void transfer(int i, const char *path, int flags, int writes) {
    int fd = open(path, flags, 0600);
    int calls = strstr(field, "_calls") != NULL;
    double taken = 0;
    off_t at = 0;

    check(fd >= 0, path);
    for (;;) {
        exceeded((taken += calls ? 1 : BLOCK) > amount);
        ssize_t n = writes ? pwrite(fd, block, BLOCK, at) : pread(fd, block, BLOCK, at);
        check(n == BLOCK, "transfer");
        if (strncmp(path, "/dev/", 5) != 0)
            at = (at + BLOCK) % DATA;
        if (calls)
            rest(i);
        else
            beat(i);
    }
}

/* Makes empty files beside another one. */
static void litter(int i, const char *file) {
    char path[4096];

    for (int count = 1; count < 4 * amount; count++) {
        snprintf(path, sizeof(path), "%s.%d", file, count);
        check(close(open(path, O_WRONLY | O_CREAT, 0600)) == 0, path);
        exceeded(count > amount);
        rest(i);
    }
    idle(i);
}

static void take(int i, const char *file) {
    char data[4096];

    snprintf(data, sizeof(data), "%s.data", file);
    if (is("wall_seconds"))
        for (;;) {
            exceeded((now(CLOCK_REALTIME) - began) / 1e9 > amount);
            rest(i);
        }
    if (is("cpu_seconds") || is("cores_peak"))
        burn(i);
    if (strncmp(field, "memory.", 7) == 0)
        fill(i);
    if (strncmp(field, "processes.", 10) == 0)
        multiply(i);
    if (is("disk.files_peak"))
        litter(i, file);
    if (is("io.storage_written_bytes") || is("disk.bytes_peak"))
        transfer(i, data, O_RDWR | O_CREAT, 1);
    if (is("io.storage_read_bytes")) {
        int fd = open(data, O_RDWR | O_CREAT, 0600);
        check(fd >= 0, data);
        for (int at = 0; at < DATA; at += BLOCK)
            check(pwrite(fd, block, BLOCK, at) == BLOCK, data);
        check(fsync(fd) == 0, data);
        transfer(i, data, O_RDONLY | O_DIRECT, 0);
    }
    if (is("io.written_bytes") || is("io.written_calls"))
        transfer(i, "/dev/null", O_WRONLY, 1);
    transfer(i, "/dev/zero", O_RDONLY, 0);
}

/* child forks; 1 in the child. */
static int child(void) {
    pid_t pid = fork();

    check(pid >= 0, "fork");
    return pid == 0;
}

static int born(int i) {
    shared->process[i].pid = getpid();
    beat(i);
    return i;
}

int main(int argc, char **argv) {
    began = now(CLOCK_REALTIME);
    if (argc != 4)
        return 2;
    field = argv[2];
    amount = atof(argv[3]);
    for (int s = 1; s < NSIG; s++)
        if (s != SIGCHLD && s != SIGSEGV && s != SIGBUS)
            signal(s, SIG_IGN);
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    check(fd >= 0 && ftruncate(fd, sizeof(*shared)) == 0, argv[1]);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(shared != MAP_FAILED, "mmap");
    born(0);
    if (child()) {
        setpgid(0, 0);
        idle(born(1));
    }
    if (child()) {
        setsid();
        idle(born(2));
    }
    if (child()) {
        if (!child())
            _exit(0);
        setsid();
        born(3);
        if (!child())
            idle(3);
        setsid();
        born(4);
        for (int i = 0; i < PROCESSES; i++)
            while (shared->process[i].pid == 0)
                rest(4);
        take(4, argv[1]);
    }
    wait(NULL); /* whichever it is */
    idle(0);
}
