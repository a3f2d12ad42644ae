/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small Application Controller for DMLib's own tests and benchmarks: serves
 * the start gate in a thread, hands each process a memory file, and looks into
 * it. The real one is controller/gate and controller/shm.
 */
#ifndef DM_TEST_CONTROLLER_H
#define DM_TEST_CONTROLLER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attune/dmlib_abi.h"
#include "attune/dmlib_attach.h"
#include "attune/dmlib_gate.h"

#define CONTROLLER_PROCESSES 4096

/* How long a test waits before it fails. */
#define WAIT_SECONDS 60

enum manner {
    MANNER_NORMAL,
    MANNER_REFUSE,    /* welcome says no */
    MANNER_SILENT,    /* accepts, never answers */
    MANNER_NO_GO,     /* never says go */
    MANNER_UNSEALED,  /* the file could shrink */
    MANNER_BAD_MAGIC, /* in the file's header */
    MANNER_BAD_SIZE,  /* a part lies outside */
};

struct process {
    struct attune_hello hello;
    struct attune_ready ready;    /* magic 0: none came */
    struct attune_header *header; /* our mapping of its memory */
    /* drained so far */
    uint64_t received[ATTUNE_POINT_COUNT];
    uint64_t tails[1024];
    /* records may be delivered one late; those that were before they were written */
    bool late;
    uint64_t unwritten;
    /* a child that asks, how often the word was seen so, and whether one has ever asked */
    uint64_t child;
    int looks;
    bool asked;
};

struct controller {
    /* set before controller_start; zeroes mean the defaults */
    uint32_t slots, rings, records;
    uint64_t padding; /* bytes more at the end of the file */
    enum manner manner;
    /* In the gate, between ready and go: the process waits. */
    void (*place)(struct controller *, struct process *);
    void *data;
    /* The hooks that enter on demand stay out. */
    bool unhooked;

    char directory[64];
    char socket[100];
    int listener;
    pthread_t thread, nurse;
    bool over;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct process *processes[CONTROLLER_PROCESSES];
    int count;
};

/* lead.c: leads the GOT slots of the program that waits in the gate to hooks. */
void lead_hooks(const struct process *p);

/* Each returns after what it names has happened, and ends the test program
 * with a message where it cannot. */
void controller_start(struct controller *);
void controller_stop(struct controller *);
/* The n-th process (from 0) that came to ready or was turned away. */
struct process *controller_process(struct controller *, int n);

struct attune_point_control *control_of(struct process *, unsigned point);
struct attune_slot *slot_of(struct process *, unsigned slot);
struct attune_command *command_of(struct process *, unsigned index);

/* Sets a control with no predicate and no sampling. */
void control_set(struct process *, unsigned point, uint32_t word);

typedef void record_handler(const struct attune_record *, void *data);
/* Consumes all rings once, frees closed slots; returns the records taken. */
uint64_t drain(struct process *, record_handler *, void *data);
/* Those of all processes that have come so far. */
void drain_all(struct controller *);
uint64_t lost(struct process *);
/* Whether a forked child has asked to register. */
bool child_has_asked(struct process *);
/* Sum of all slots' aggregates of one point; extremes of either parity. */
struct attune_aggregate aggregate_of(struct process *, unsigned point);

void command_post(struct process *, unsigned index, struct attune_command command,
                  const unsigned *points, size_t point_count);
/* Posts and waits until it is done; false after WAIT_SECONDS. */
bool command_run(struct process *, unsigned index, struct attune_command command,
                 const unsigned *points, size_t point_count);

/* Starts a program with DMLib preloaded (library NULL: without). extra is one
 * more environment entry or NULL. Standard output goes to *output_fd, or where
 * ours goes if that is NULL. The program does not outlive this process. */
pid_t spawn(const char *library, const struct controller *, char *const argv[], const char *extra,
            int *output_fd);
/* In a child just forked: a program that waits for commands would outlive a
 * test that was killed. */
void die_with(pid_t parent);
/* Reads everything and closes it. */
void read_all(int fd, char *text, size_t size);
/* Waits for the program; its status as waitpid gives it. */
int finish(pid_t pid);

/* ---- the usual shape of a test ------------------------------------------ */

struct test_case {
    const char *name;
    void (*run)(void);
};

/* A controller with one program. */
struct session {
    struct controller controller;
    const char *library; /* NULL: long_gate_path */
    const char *extra;   /* environment */
    pid_t pid;
    int output;
    struct process *process; /* the program, once it came to the gate */
    char text[4096];         /* its output, after session_end */
};

/* Paths of what is tested, from the command line of the test program. The library
 * of long_gate_path waits at the gate as long as a crowded machine needs; it is for
 * all tests but those of that time. */
extern const char *library_path, *long_gate_path, *target_path, *directory_path;

/* Starts `target ARGUMENTS` (split at blanks; a first word with a slash is a
 * program of its own) and waits for it in the gate. */
void session_start(struct session *, const char *arguments);
/* The same, where it is not sure to come to the gate. */
void session_spawn(struct session *, const char *arguments);
/* Drains (unless told not to) until it ends; it must exit with 0. */
void session_end(struct session *);
void session_end_undrained(struct session *);
/* After session_end. */
void session_close(struct session *);

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_at(__FILE__, __LINE__, #condition, " " __VA_ARGS__);                              \
    } while (0)
#define EXPECT_EQUAL(got, wanted)                                                                  \
    do {                                                                                           \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                          \
        if (got_ != wanted_)                                                                       \
            fail_at(__FILE__, __LINE__, #got " == " #wanted, "got %lld, want %lld", got_,          \
                    wanted_);                                                                      \
    } while (0)
void fail_at(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

enum {
    P_MALLOC = 0,
    P_FREE = 1,
    P_CALLOC = 2,
    P_REALLOC = 3,
    P_MEMALIGN = 4,
    P_ALIGNED = 5,
    P_POSIX = 6,
    P_LOCK = 16,
    P_UNLOCK = 19,
    P_CLOCKLOCK = 20,
    P_READ = 32,
    P_WRITE = 33,
    P_PREAD = 34,
    P_PWRITE = 35,
};

void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
double now_seconds(void);

/* How often a test measures a time that has a limit, until it is kept: what else
 * runs on the machine only adds to it. */
#define TRIES 5

#endif
