/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binary interface between DMLib (in the application) and the Application
 * Controller: the memory that they share. dmlib_gate.h has the messages by which
 * it changes hands, dmlib_attach.h how DMLib comes into a program that runs
 * already. Everything that both sides can see is declared in this directory and
 * nowhere else; package dmlib/abi has it in Go, generated from here (go generate
 * ./dmlib/abi).
 *
 * One anonymous memory file per process holds, in this order,
 *
 *   header | point controls | mailbox | thread slots | rings | programs | tables
 *
 * The controller creates, sizes and seals it (the application cannot shrink it
 * under the controller's feet), hands it over during the start gate, and keeps
 * the only descriptor: DMLib maps it and closes its own, so that the
 * application's descriptor table is what it would have been without us.
 *
 * Who writes what: fields marked (AC) are written by the controller, (app) by
 * DMLib, (app:thread) by the owning thread only. Both sides treat the other's
 * fields as untrusted input.
 */
#ifndef ATTUNE_DMLIB_ABI_H
#define ATTUNE_DMLIB_ABI_H

#include <stdint.h>

#include "aggregate.h"

/* Columns of comments, also behind macros. */
/* clang-format off */

#define ATTUNE_ABI_MAGIC 0x0031424c4d445441ull /* "ATDMLB1\0", little endian */
#define ATTUNE_ABI_VERSION 9u

#define ATTUNE_CACHE_LINE 64u

/* ---- points ---------------------------------------------------------- */

/* Points 0..ATTUNE_HOOK_COUNT-1 are DMLib's own hooks (dmlib_hooks.def gives
 * their names); the rest are stubs that the controller binds to any dynamic
 * function by rewriting GOT slots, or numbers that it gives to functions whose
 * entry it patches. */
#define ATTUNE_HOOK_COUNT 64u
#define ATTUNE_STUB_COUNT 192u
#define ATTUNE_POINT_COUNT (ATTUNE_HOOK_COUNT + ATTUNE_STUB_COUNT)

/* The last of the hooks' points belong to none: each may take the hits of a hook
 * as well, with settings of its own. */
#define ATTUNE_SHARER_COUNT 16u
#define ATTUNE_SHARER_FIRST (ATTUNE_HOOK_COUNT - ATTUNE_SHARER_COUNT)

/* Control word bits. A zero word means that nobody asked: the hook passes
 * straight through. */
#define ATTUNE_CTL_AGGREGATE (1u << 0) /* keep count/sum/min/max/histogram    */
#define ATTUNE_CTL_EVENT (1u << 1)     /* write a record to the thread's ring */
#define ATTUNE_CTL_DURATION (1u << 2)  /* value = ticks spent in the call;
                                        * hooks, and functions patched at entry
                                        * and exits: a stub sees no return    */
#define ATTUNE_CTL_MAILBOX (1u << 3)   /* a command waits for a safe point    */
#define ATTUNE_CTL_REGISTER (1u << 4)  /* private to DMLib: not yet registered */
/* 1u << 5 was a record without a time of its own, and is taken until the next version */
#define ATTUNE_CTL_PROGRAM (1u << 7)   /* captures values: `program` says which */

#define ATTUNE_CTL_SHARED (1u << 8)    /* hooks: sharers take the hits as well;
                                        * `parameter` says which              */
#define ATTUNE_CTL_TIMED (1u << 9)     /* SHARED: one of them wants DURATION  */

struct attune_point_control {
    uint32_t word;          /* (AC) ATTUNE_CTL_* */
    uint32_t sample_mask;   /* (AC) without AGGREGATE, one call in mask + 1 is
                             * looked at, before anything else of it is; with it,
                             * of those that count one is delivered; 2^k-1     */
    uint64_t min_value;     /* (AC) predicate: value >= min_value ...          */
    uint64_t max_value;     /* (AC) ... and value <= max_value                 */
    uint16_t parameter;     /* (AC) stubs and patches: which integer parameter is
                             * the value, 0 to 5; hooks with SHARED: bit b set:
                             * point SHARER_FIRST + b takes the hits, too      */
    uint16_t program;       /* (AC) PROGRAM: number of the program             */
    uint32_t era;           /* (AC) another one each time that DURATION is turned
                             * on or the point changes hands, before the word
                             * says so: a call ends in the era in which it began,
                             * or is not measured                              */
};

/* ---- thread slots ---------------------------------------------------- */

#define ATTUNE_SLOT_FREE 0u   /* (AC) -> may be claimed by CAS             */
#define ATTUNE_SLOT_USED 1u   /* (app) claimed by the thread `tid`         */
#define ATTUNE_SLOT_CLOSED 2u /* (app) thread has ended; AC drains, frees  */

/* A call that has begun and not ended, of a function that is patched at its
 * entry and its exits. */
struct attune_open_call {
    uint64_t stack;  /* address of its return address */
    uint64_t begun;  /* time-stamp counter            */
    uint64_t value;
    uint64_t extra;
    uint32_t point;
    uint32_t era;    /* of the point, when it began   */
    uint8_t pad[24];
};

#define ATTUNE_OPEN_CALLS 64u

struct attune_slot {
    /* line 0: identity */
    uint32_t state;    /* (app) FREE->USED, USED->CLOSED; (AC) CLOSED->FREE   */
    int32_t tid;       /* (app:thread)                                        */
    uint32_t ring;     /* (app:thread) ring index + 1, 0: none yet; a ring
                        * stays with its slot when the slot changes hands     */
    uint32_t open;     /* (app:thread) open calls, the outermost first        */
    uint64_t lost;     /* (app:thread) records dropped: ring full or no ring;
                        * hits within a measurement, and calls that there are
                        * too many open ones for. See lost_no_slot            */
    uint8_t pad0[40];
    /* line 1: producer */
    uint64_t head;     /* (app:thread) records published since the slot began */
    uint8_t pad1[56];
    /* line 2: consumer */
    uint64_t tail;     /* (AC) records consumed                               */
    uint8_t pad2[56];
    struct attune_aggregate aggregates[ATTUNE_POINT_COUNT]; /* (app:thread)   */
    struct attune_open_call calls[ATTUNE_OPEN_CALLS];       /* (app:thread)   */
};

/* The common slot, behind those that threads claim, has the aggregates of hits in
 * threads that found no other: any thread adds to them, atomically. Nothing else in
 * it is used. */

/* ---- rings ----------------------------------------------------------- */

/* One event. With DURATION its time is that of the call's return, else that of
 * the record. Time is the raw time-stamp counter in the ring; the controller
 * rewrites it to CLOCK_MONOTONIC nanoseconds while draining, so everything
 * downstream sees nanoseconds. */
struct attune_record {
    uint64_t time;
    uint16_t point;
    uint16_t flags;     /* ATTUNE_RECORD_* */
    uint32_t thread;    /* 0 in the ring; the controller fills in the tid */
    uint64_t value;     /* hook: see dmlib_hooks.def; stub, patch: the
                         * argument that the control names            */
    uint64_t extra;     /* hook: second value; stub: second argument;
                         * DURATION: ticks in the call, then ns            */
};

#define ATTUNE_RECORD_DURATION (1u << 0)
#define ATTUNE_RECORD_SAMPLED (1u << 1)
/* 1u << 2 is taken until the next version, see the control word */

/* ---- programs and tables ---------------------------------------------- */

/* What some points capture. Points of one session point share a program. */
struct attune_program_slot {
    struct attune_program program; /* (AC) */
    uint64_t unreadable; /* (app) any thread, atomic: hits without an aggregate,
                          * because its value or key could not be read         */
    uint8_t pad[56];
};

/* Aggregates by key. Hits with keys that have no place go to rest. */
struct attune_table {
    uint32_t keys;  /* (app) that have a place */
    uint8_t pad[60];
    struct attune_aggregate rest;                 /* (app) any thread */
    struct attune_aggregate place[ATTUNE_PLACES]; /* (app) any thread */
};

/* ---- mailbox --------------------------------------------------------- */

#define ATTUNE_MAILBOX_COUNT 16u

#define ATTUNE_CMD_EMPTY 0u
#define ATTUNE_CMD_POSTED 1u  /* (AC) complete, waits for a safe point      */
#define ATTUNE_CMD_CLAIMED 2u /* (app) a thread executes it, or gives it back:
                               * POSTED again, if it is not for that thread */
#define ATTUNE_CMD_DONE 3u    /* (app) result is valid; AC makes it EMPTY   */

#define ATTUNE_OP_NOP 0u   /* proves that safe points are reached            */
#define ATTUNE_OP_CALL 1u  /* result = ((fn)args[0])(args[1]..args[6]); not in a
                            * thread that may be in a signal handler, unless
                            * `point` names where the call is made. Signals
                            * but those of faults wait meanwhile, also in
                            * threads that it starts                         */
/* 2 and 3 were loads and stores, and stay free */
#define ATTUNE_OP_STUB 4u  /* bind stub args[0] to the function args[1]; its
                            * binding never changes afterwards (a forked
                            * child may still call through it)               */
#define ATTUNE_OP_GOT 5u   /* result = old; *(uint64_t *)args[0] = args[2],
                            * only if old == args[4], else error = EAGAIN;
                            * args[3] is 1, by which this version meant that.
                            * args[5] != 0 (RELRO): makes the page writable for
                            * the store; EBUSY if the loader is still at work
                            * on it.
                            * args[1], [6], [7]: struct attune_origin of the
                            * slot, as words; error = ESTALE if it is none any
                            * more. All 0: it is not asked                   */
#define ATTUNE_OP_MAP 6u   /* maps args[1] bytes at args[0], private, readable
                            * and executable, for the controller to write
                            * from outside; EEXIST if something is there     */

/* Safe-point families: at which hooks a command may run. A thread that enters
 * an allocation hook could legally call the allocator, so calls that take its
 * locks (mallopt) are safe there, and at no other place. */
#define ATTUNE_AT_ALLOC (1u << 0)
#define ATTUNE_AT_LOCK (1u << 1)
#define ATTUNE_AT_IO (1u << 2)
#define ATTUNE_AT_STUB (1u << 3)
#define ATTUNE_AT_PATCH (1u << 4) /* the entry of any function: the thread may
                                   * hold any lock, so nothing is called here  */
#define ATTUNE_AT_GATE (1u << 5)  /* the process waits in the start gate: OP_MAP
                                   * and OP_NOP only                           */
#define ATTUNE_AT_STOPPED (1u << 6) /* a thread that the controller has stopped
                                     * anywhere and made call attend_entry:
                                     * nothing is called there either        */

/* ---- entry patches --------------------------------------------------- */

/* A patched function leads to code of the controller's making, which calls
 * patch_entry where a call begins and patch_exit where it ends, once for all points.
 * That call has ATTUNE_ISLAND_CALL bytes; ATTUNE_ISLAND_NUMBER bytes behind its first
 * one stands in the lower half of a word the number that a stub of the first point would
 * have, and in the upper half how many points follow: their numbers stand each
 * ATTUNE_ISLAND_BLOCK bytes behind the one before. */
#define ATTUNE_ISLAND_CALL 6
#define ATTUNE_ISLAND_NUMBER 32
#define ATTUNE_ISLAND_BLOCK 64

struct attune_command {
    uint32_t state;   /* ATTUNE_CMD_*, compare-and-swap only */
    uint32_t op;      /* (AC) ATTUNE_OP_* */
    uint32_t at;      /* (AC) mask of ATTUNE_AT_*. The controller sets 0 when it gives
                       * a command up, even while a thread holds it. That thread
                       * may finish; no other thread starts it.           */
    int32_t thread;   /* (AC) only in this thread; 0: in any */
    uint64_t pad0;
    uint64_t args[8]; /* (AC) */
    uint64_t result;  /* (app) */
    int32_t error;    /* (app) errno value, 0 = done */
    int32_t done_by;  /* (app) tid that executed it */
    uint64_t pad1;
    uint64_t done_point; /* (app) point index at which it ran */
    uint32_t point;   /* (AC) 0: any point of the families; else 1 + the index
                       * of the only one, where OP_CALL is permitted also if it
                       * is a patch */
    uint32_t reserved; /* 0 */
};

/* ---- forked children -------------------------------------------------- */

/* A forked child registers by system calls, for which a seccomp filter may kill it.
 * So it asks before by the word `child` of its parent's header, and the controller
 * looks at the filters of the child from outside. One child at a time:
 *
 *   NONE -> ASKS           the child, in one of its hooks, where it goes on
 *   ASKS -> ATTENDED       the controller, from now on with an eye on the word
 *   ATTENDED -> WAITS      the child, in a later hook: it does nothing but wait
 *   WAITS -> MAY, MAY_NOT  the controller, after its look
 *   MAY, MAY_NOT -> NONE   the child; or the controller, for one that has gone
 *
 * A program in seccomp's strict mode may not even read the time-stamp counter: a child
 * that has not been answered counts calls and `beat` instead.
 *
 * A child that has waited for too long goes on, and the controller stops attending
 * after a while: WAITS, ATTENDED -> NONE. Which child: its first thread's id as the
 * C library knows it. */
#define ATTUNE_CHILD_NONE 0u
#define ATTUNE_CHILD_ASKS 1u
#define ATTUNE_CHILD_ATTENDED 2u
#define ATTUNE_CHILD_WAITS 3u
#define ATTUNE_CHILD_MAY 4u
#define ATTUNE_CHILD_MAY_NOT 5u

/* ---- hooks that enter on demand --------------------------------------- */

/* A hook to which the controller leads GOT slots while somebody wants it. Both are 0
 * where the library stands before the function by its name, or there is no function. */
struct attune_hook_entry {
    uint64_t hook;   /* (app) its address                        */
    uint64_t behind; /* (app) of the function that it goes on to */
};

/* ---- header ---------------------------------------------------------- */

struct attune_header {
    uint64_t magic;          /* (AC) */
    uint32_t version;        /* (AC) */
    uint32_t header_size;    /* (AC) sizeof(struct attune_header) */
    uint64_t total_size;     /* (AC) of the memory file */
    uint64_t control_offset; /* (AC) struct attune_point_control[point_count] */
    uint64_t mailbox_offset; /* (AC) struct attune_command[MAILBOX_COUNT] */
    uint64_t slot_offset;    /* (AC) struct attune_slot[slot_count + 1]: the last one
                              * is common                                         */
    uint64_t ring_offset;    /* (AC) attune_record[ring_count][ring_records] */
    uint32_t point_count;    /* (AC) == ATTUNE_POINT_COUNT */
    uint32_t slot_count;     /* (AC) */
    uint32_t ring_count;     /* (AC) */
    uint32_t ring_records;   /* (AC) power of two */
    uint32_t epoch;          /* (AC) number of the running interval: see aggregate.h */
    uint32_t detached;       /* (AC) 1: go inert for good */
    uint64_t controller_start;     /* (AC) start time of the controller, as in
                                    * /proc/PID/stat                           */
    uint64_t controller_namespace; /* (AC) inode of its pid namespace          */
    int32_t controller_pid;        /* (AC) as it numbers itself                */
    uint32_t reserved;
    uint64_t program_offset; /* (AC) struct attune_program_slot[program_count] */
    uint64_t table_offset;   /* (AC) struct attune_table[table_count] */
    uint32_t program_count;  /* (AC) may be 0 */
    uint32_t table_count;    /* (AC) may be 0 */
    /* line 2: written once by DMLib before it reports ready */
    int32_t pid;             /* (app) as the process sees itself */
    uint32_t state;          /* (app) 0 not yet, 1 ready */
    uint64_t dmlib_base;     /* (app) load address of DMLib */
    uint64_t stub_entry;     /* (app) address of stub 0 */
    uint32_t stub_size;      /* (app) bytes from one stub to the next */
    uint32_t stub_count;     /* (app) */
    uint64_t stub_target;    /* (app) address of stub 0's target: stub_count
                              * pointers, in private memory */
    uint64_t patch_entry;    /* (app) what islands call; 0: no entry patches */
    uint64_t stub_unbound;   /* (app) target of a stub that is not bound; 0 is
                              * one that was never prepared */
    uint64_t patch_exit;     /* (app) what islands at exits call */
    /* line 3: (app) any thread, atomic, rare */
    uint64_t lost_no_slot;   /* hits of threads that found no slot. Some of those
                              * counted would not have been taken:
                              * - of a hit without a slot DMLib looks at the range of
                              *   the value, not at the conditions of the program;
                              * - of a hit within a measurement (a slot's lost) too;
                              * - of a timed call it looks at neither. */
    uint64_t pad;
    uint32_t ring_next;      /* (app) rings handed out so far */
    uint32_t slots_used;     /* (app) no slot from this one on was ever claimed;
                              * raised before a claim, so that the controller
                              * need not touch the pages of unused slots */
    uint64_t attend_entry;   /* (app) written with line 2: function without
                              * parameters that executes commands for
                              * ATTUNE_AT_STOPPED; returns 0 if the thread stands
                              * where it cannot                                */
    uint64_t child;          /* a forked child that has not registered yet, and the
                              * controller, by compare-and-swap: ATTUNE_CHILD_*,
                              * and in the upper half which child              */
    uint32_t common_used;    /* hits were added to the common slot               */
    uint32_t beat;           /* (AC) counts up with each look at whether children
                              * ask: their clock, see above. Where it stands still
                              * commands are no longer looked for              */
    uint64_t hook_entry;     /* (app) written with line 2: address of
                              * struct attune_hook_entry[HOOK_COUNT]           */
    uint8_t pad3[8];
};

#endif
