/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The processes of a tree that is accounted for, which two objects share. */
#ifndef ATTUNE_ACCOUNT_H
#define ATTUNE_ACCOUNT_H

#include "attune_bpf.h"
#include "taken.h"

/* A process. Its number in the initial pid namespace is its key. */
struct process_account {
    struct taken taken;
    u64 start_time;    /* ns since boot, as its identity               */
    u64 end_time;      /* ns since boot; 0: it has not ended           */
    u64 resident_peak; /* pages; 0: not known                          */
    u64 virtual_peak;  /* pages; 0: not known                          */
    u64 before_exec;   /* what signal->maxrss was at its first exec    */
    u32 execs;
    u32 threads; /* that it had in all                                 */
    s32 living;  /* threads that are not done with                     */
    s32 pid;     /* as the controller has it                           */
    s32 parent;
    s32 status;
    u32 ended;
    char comm[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, s32);
    __type(value, struct process_account);
} processes SEC(".maps");

#endif
