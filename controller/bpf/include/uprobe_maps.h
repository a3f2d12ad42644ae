/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the probes of uprobes.bpf.c share with user space, and with each other:
 * maps, records and settings. */
#ifndef ATTUNE_UPROBE_MAPS_H
#define ATTUNE_UPROBE_MAPS_H

#include "attune_bpf.h"

#include "plan.h"
#include "ring.h"
#include "watch.h"

struct watch_key {
    u32 process;
    u32 point;
};

/* A record as it travels: the word of the ring, then struct attune_record. */
struct uprobe_record {
    u64 word;
    u64 time; /* CLOCK_MONOTONIC, ns */
    u16 point;
    u16 flags; /* RECORD_* */
    u32 thread;
    u64 value;
    u64 extra; /* RECORD_DURATION: ns spent in the call */
};

#define RECORD_DURATION (1u << 0)
#define RECORD_SAMPLED (1u << 1)

/* A record with what was captured. User space makes continuations of the rest.
 * The value of a string is its length, and ATTUNE_STRING_CUT; the bytes of all
 * strings follow one another, each in as many words as it needs. */
struct captured_record {
    struct uprobe_record record;
    u32 captures;
    u32 kinds;
    u64 value[ATTUNE_CAPTURES];
    u8 strings[];
};

#define ALL_STRINGS (RING_RECORD_MAX - sizeof(struct captured_record) - ATTUNE_STRING - 16)

/* bpf2go emits the types that some global refers to. */
const struct watch *unused_watch __attribute__((unused));
const struct plan *unused_plan __attribute__((unused));
const struct operand *unused_operand __attribute__((unused));
const struct ring *unused_ring __attribute__((unused));
const struct captured_record *unused_record __attribute__((unused));

/* Number of struct bpf_uprobe_multi_run_ctx in the kernel's type information; 0:
 * the attach cookie can be had by the helper only. */
const volatile u32 run_ctx_type = 0;
/* Bytes of the ring, a power of two. */
const volatile u32 ring_size = 2 * 1024 * 1024;

/* (user) number of the interval; its parity chooses the extremes in use. */
u32 interval;
/* (user) how many expectations there are. */
u32 expected;

/* What the probes find where they stand, by attach cookie. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1024);
    __type(key, u32);
    __type(value, struct plan);
} plans SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1024);
    __type(key, u32);
    __type(value, struct watch);
} watches SEC(".maps");

/* Some watch of each bucket, as its number + 1; 0: no watch falls into it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, WATCH_BUCKETS);
    __type(key, u32);
    __type(value, u64);
} buckets SEC(".maps");

/* Which process is watched at which point: number of the watch. Asked where a
 * bucket holds several. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC); /* only user space inserts */
    __uint(max_entries, 1024);
    __type(key, struct watch_key);
    __type(value, u32);
} watched SEC(".maps");

/* A watch that waits for the next process of a user that executes a file, and
 * is given to it at its first hit: before anybody has told that it is there. */
struct expectation {
    u64 inode;   /* (user) of the program's file, as the kernel has it */
    u32 device;  /* (user) major << 20 | minor                         */
    u32 uid;     /* (user)                                             */
    u32 point;   /* (user) 0: none                                     */
    u32 watch;   /* (user) its number                                  */
    u32 claimed; /* the process that has it; 0: none                   */
    u32 reserved;
};

#define EXPECTATIONS 32

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EXPECTATIONS);
    __type(key, u32);
    __type(value, struct expectation);
} expectations SEC(".maps");

const struct expectation *unused_expectation __attribute__((unused));

/* Programs of captures of watches that have one. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 256);
    __type(key, u32);
    __type(value, struct attune_program);
} programs SEC(".maps");

/* Tables of keys, each of struct attune_aggregate and made when a watch needs it. What
 * the inner maps of this one and the like are user space says (innertable.go). */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 256);
    __type(key, u32);
    __uint(value_size, sizeof(u32));
} key_tables SEC(".maps");

/* ---- keys that are no numbers: key_text.h, unwind.h ---- */

#define TEXT_WORDS 64

/* What a key stands for. A hit writes it once; state comes last. */
struct key_text {
    u32 state;  /* TEXT_*                                                     */
    u32 length; /* bytes: of a string; of a stack, 8 for each address         */
    u32 cut;    /* there was more                                             */
    u32 reserved;
    u64 words[TEXT_WORDS]; /* filled with zeros to the end of a word          */
};

#define TEXT_FREE 0
#define TEXT_WRITING 1
#define TEXT_READY 2

const struct key_text *unused_key_text __attribute__((unused));

/* What the keys of the tables with the same numbers in key_tables stand for. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 256);
    __type(key, u32);
    __uint(value_size, sizeof(u32));
} text_tables SEC(".maps");

/* For instructions from pc on, up to the next row. */
struct unwind_row {
    u32 pc;    /* from the base of the object                                 */
    u16 frame; /* its address is so many words above the register's           */
    u8 kind;   /* ROW_*                                                       */
    u8 saved;  /* the caller's base pointer is so many words below the frame;
                * 0: in its register                                          */
};

#define ROW_NONE 0      /* nothing is known                                   */
#define ROW_STACK 1     /* the frame is above the stack pointer               */
#define ROW_BASE 2      /* above the base pointer                             */
#define ROW_LINKAGE 3   /* a stub of the PLT: one word, two after its push    */
#define ROW_OUTERMOST 4 /* there is no caller                                 */
#define ROW_OTHER 5     /* by what these tables have no form for              */

/* An executable object in a process, in ascending order; the first is none. */
struct unwind_object {
    u64 start;
    u64 end;
    u64 base;  /* what rows count from                                        */
    u32 table; /* number + 1; 0: none                                         */
    u32 rows;
};

const struct unwind_row *unused_unwind_row __attribute__((unused));
const struct unwind_object *unused_unwind_object __attribute__((unused));

/* A table for each file. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1024);
    __type(key, u32);
    __uint(value_size, sizeof(u32));
} row_tables SEC(".maps");

/* The objects of a process, at the number of its watch's table of keys. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 256);
    __type(key, u32);
    __uint(value_size, sizeof(u32));
} object_tables SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct ring);
} record_ring SEC(".maps");

/* ring_size bytes and room for the longest record; user space gives the size. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(u32));
    __uint(value_size, 2 * 1024 * 1024 + RING_RECORD_MAX);
} ring_memory SEC(".maps");

struct call_key {
    u64 thread;
    u64 frame;
    u32 plan;
    u32 jump; /* 0: it was called; else by which jump it began, of those at this frame */
};

struct call {
    u64 entered;
    u64 value;
    u32 era;   /* of its watch                                                      */
    u32 jumps; /* of one that was called: that began at its frame since, and are not
                * through                                                           */
    u64 parameters[PARAMETERS];
};

/* Calls under way at points with both entry and exit. Least recently used
 * ones make room: those of threads that ended, or left by longjmp. One whose return
 * came while nobody watched stays, too: a call ends only by the watch by which it began.
 * Each CPU keeps some places for itself: user space gives the size (programs.go). */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 8192);
    __type(key, struct call_key);
    __type(value, struct call);
} calls SEC(".maps");

#endif
