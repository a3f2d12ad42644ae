/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a thread took, read when the kernel is done with it: nothing is counted twice
 * (signal->ioac and /proc/PID/io hold what reaped children took as well, task->ioac
 * does not).
 *
 * A thread is done with at its last switch. At the exit tracepoint the time since
 * the last tick is missing from its run time: for short programs, nearly all.
 * What other threads of the machine pay for that is one read and one comparison per switch.
 */
#ifndef ATTUNE_TAKEN_H
#define ATTUNE_TAKEN_H

#include "attune_bpf.h"
#include "kernel_types.h"

/* What threads took that are done with. */
struct taken {
    u64 runtime; /* ns                                                 */
    u64 wait;    /* ns that they could have run and had no CPU         */
    u64 user;    /* ns, as the ticks saw it; its share counts          */
    u64 system;
    u64 read_chars;
    u64 written_chars;
    u64 read_calls;
    u64 written_calls;
    u64 read_bytes;
    u64 written_bytes;
    u64 cancelled_bytes; /* of written_bytes: of removed files         */
    u64 voluntary;
    u64 involuntary;
    u64 minor_faults;
    u64 major_faults;
};

#ifdef ATTUNE_ACCOUNT
/* The state of a thread at its last switch. */
#define TASK_DEAD 0x80

/* Whether a switch is the last one of its thread, which nothing wakes up any more. The
 * tracepoint tells the state too, but from Linux 5.18 on only: before, the kernel attaches
 * no program that reads beyond what it is told. */
INLINE bool is_done_with(struct task_struct *task) { return READ(task, __state) == TASK_DEAD; }

#define ADD(field, source)                                                                         \
    do {                                                                                           \
        u64 amount_ = READ(task, source);                                                          \
        __sync_fetch_and_add(&taken->field, amount_);                                              \
    } while (0)

INLINE void add_taken(struct taken *taken, struct task_struct *task) {
    ADD(runtime, se.sum_exec_runtime);
    ADD(wait, sched_info.run_delay);
    ADD(user, utime);
    ADD(system, stime);
    ADD(read_chars, ioac.rchar);
    ADD(written_chars, ioac.wchar);
    ADD(read_calls, ioac.syscr);
    ADD(written_calls, ioac.syscw);
    ADD(read_bytes, ioac.read_bytes);
    ADD(written_bytes, ioac.write_bytes);
    ADD(cancelled_bytes, ioac.cancelled_write_bytes);
    ADD(voluntary, nvcsw);
    ADD(involuntary, nivcsw);
    ADD(minor_faults, min_flt);
    ADD(major_faults, maj_flt);
}
#endif

#endif
