/* SPDX-License-Identifier: Apache-2.0 */
/* Processes under seccomp filters that list what is allowed, and kill for the rest. */
#include "target.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the C library needs for threads, children and output; nothing that only DMLib
 * calls. */
static const int allowed[] = {
    SYS_write,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_clone,
    SYS_clone3,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_madvise,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_rseq,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_wait4,
    SYS_brk,
    SYS_getrandom,
    SYS_newfstatat,
    SYS_clock_nanosleep,
    SYS_restart_syscall,
    SYS_sched_yield,
};
#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

#define ALLOW(number)                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(number), 0, 1),                                 \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void confine_but_for(int another) {
    struct sock_filter program[2 * ALLOWED + 4] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(another),
    };
    size_t length = 3;
    for (size_t i = 0; i < ALLOWED; i++) {
        const struct sock_filter allow[] = {ALLOW(allowed[i])};
        program[length++] = allow[0];
        program[length++] = allow[1];
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog filter = {.len = (unsigned short)length, .filter = program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void confine(void) { confine_but_for(allowed[0]); }

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* no system call */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void work(double time) {
    for (double end = seconds() + time; seconds() < end;)
        lock_pairs(&own, 10);
}

/* confined_children COUNT PAIRS STEP MILLISECONDS: each child puts itself under a
 * filter after so many lock pairs, STEP microseconds later than the one before, and
 * works on */
static void confined_children(void) {
    for (long i = 0; i < number[0]; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            lock_pairs(&own, number[1]);
            work((double)(i * number[2]) / 1e6);
            confine();
            work((double)number[3] / 1e3);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        if (status != 0) {
            printf("child %ld: status %#x\n", i, (unsigned)status);
            exit(5);
        }
    }
}

/* strict_children COUNT CALLS: children that may call read, write and exit, and have no
 * time-stamp counter */
static void strict_children(void) {
    for (long i = 0; i < number[0]; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0);
            for (long call = 0; call < number[1]; call++)
                if (write(STDOUT_FILENO, "", 0) != 0)
                    syscall(SYS_exit, 4);
            syscall(SYS_exit, 0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        if (status != 0) {
            printf("child %ld: status %#x\n", i, (unsigned)status);
            exit(5);
        }
    }
}

/* confined_parent MILLISECONDS: a child inherits the filter of its parent */
static void confined_parent(void) {
    lock_pairs(&own, 10);
    confine();
    pid_t child = fork();
    if (child == 0) {
        work((double)number[0] / 1e3);
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

static void *lock_some(void *unused) {
    lock_pairs(&own, number[1]);
    return unused;
}

/* confined_threads COUNT PAIRS: threads that begin under a filter */
static void confined_threads(void) {
    confine();
    for (long i = 0; i < number[0]; i++) {
        pthread_t one;
        CHECK(pthread_create(&one, NULL, lock_some, NULL) == 0);
        CHECK(pthread_join(one, NULL) == 0);
    }
}

/* confined_call: comes by hooks under a filter that allows prctl(2) beside the rest */
static void confined_call(void) {
    confine_but_for(SYS_prctl);
    lock_pairs(&own, 10);
}

/* clockless_command: comes by hooks without the time-stamp counter */
static void clockless_command(void) {
    CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
    lock_pairs(&own, 10);
}

const struct subject confined_subjects[] = {
    {"confined_children", confined_children},
    {"strict_children", strict_children},
    {"confined_parent", confined_parent},
    {"confined_threads", confined_threads},
    {"confined_call", confined_call},
    {"clockless_command", clockless_command},
    {NULL, NULL},
};
