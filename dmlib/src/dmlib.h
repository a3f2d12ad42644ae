/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DMLib's files share. Nothing here is visible outside the library.
 *
 * State is of three kinds:
 *  - dm_live: one page that the kernel zeroes in a forked child. Whatever is
 *    true of this process only stands there, so that a child starts
 *    unregistered without any fork handler, also after a raw fork or clone.
 *  - dm_thread: this thread's words, initial-exec TLS.
 *  - everything else is written by the constructor and inherited by children.
 */
#ifndef DM_DMLIB_H
#define DM_DMLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_x86_64.h"
#include "attune/dmlib_abi.h"
#include "attune/dmlib_attach.h"
#include "attune/dmlib_gate.h"

#define DM_HIDDEN __attribute__((visibility("hidden")))
#define DM_EXPORT __attribute__((visibility("default")))
#define DM_NOINLINE __attribute__((noinline))
#define DM_COLD __attribute__((noinline, cold))
#define DM_INLINE static inline __attribute__((always_inline))
#define dm_likely(x) __builtin_expect(!!(x), 1)
#define dm_unlikely(x) __builtin_expect(!!(x), 0)

/* Orders this thread's own stores against a signal handler in it. */
#define dm_compiler_barrier() __asm__ volatile("" ::: "memory")

enum dm_point {
#define HOOK(index, name, family, value, extra) DM_POINT_##name = index,
#include "attune/dmlib_hooks.def"
#undef HOOK
};

#define DM_SYSCALL_ARGS(a, b, c, d, e, f, ...)                                                     \
    (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
#define dm_syscall(number, ...) dm_syscall6(number, DM_SYSCALL_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0))

/* ---- the mapping (layout.c, gate.c) ---------------------------------- */

/* A memory file's parts, copied once after every number in its header was
 * checked: later changes of the header cannot lead us outside the mapping. */
struct dm_mapping {
    struct attune_header *header;
    struct attune_point_control *controls;
    struct attune_command *mailbox;
    struct attune_slot *slots;
    struct attune_record *rings;
    struct attune_program_slot *programs;
    struct attune_table *tables;
    uint64_t size;
    uint32_t slot_count; /* the common slot's number */
    uint32_t slot_limit; /* of those that threads claim */
    uint32_t ring_count;
    uint32_t ring_records;
    uint32_t program_count;
    uint32_t table_count;
};

/* Fills mapping from the size bytes at memory; false if the header is not
 * one that this library can work with. */
DM_HIDDEN bool dm_layout_check(void *memory, uint64_t size, struct dm_mapping *mapping);

/* Whether a memory file of so many bytes leaves a program what it may need itself of the
 * addresses that it may have, and of the memory that it may lock: a 16th of them at most. */
DM_HIDDEN bool dm_layout_leaves_room(uint64_t size, uint64_t addresses, uint64_t lockable);

/* Registers this process with the controller behind the socket that
 * dm_gate_address remembered. True: mapping is filled and reported ready. No
 * descriptor stays open. Uses nothing but system calls. */
DM_HIDDEN bool dm_gate_register(uint32_t hello_flags, int milliseconds, struct dm_mapping *mapping);
DM_HIDDEN bool dm_gate_address(const char *path);
/* The same without a gate: maps a memory file that this process has open. 0 or
 * an errno value. */
DM_HIDDEN int dm_gate_adopt(int fd, uint64_t size, struct dm_mapping *mapping);

/* ---- state of the process (state.c) ---------------------------------- */

struct dm_live {
    /* First, the stubs know: from dm_static_control to the controls in use.
     * 0 before registration and in a forked child. */
    intptr_t delta;
    uint64_t generation; /* of the mapping; 0: none */
    struct dm_mapping mapping;
    /* A page of constant data can be written; one thread at a time, for another
     * one's restored protection would take the page from under it. */
    uint32_t unprotected;
    /* a forked child before it registers */
    uint32_t child_calls;
    uint32_t child_beat;  /* of its parent's header, at the last hook */
    uint32_t child_beats; /* how often that had changed */
    uint32_t child_calls_at_beat;
    uint32_t child_registers; /* one thread at a time, by compare-and-swap; or inert */
};

union dm_live_page {
    struct dm_live live;
    char page[DM_PAGE_SIZE];
};

DM_HIDDEN extern union dm_live_page dm_live_page;
#define dm_live (dm_live_page.live)

/* Controls of a process without a mapping: all words 0 (inert) or all
 * ATTUNE_CTL_REGISTER (a child of a registered process looks here). */
DM_HIDDEN extern struct attune_point_control dm_static_control[ATTUNE_POINT_COUNT];

/* The hooks that stand before nothing until the controller leads GOT slots to them. */
DM_HIDDEN extern struct attune_hook_entry dm_hook_entry[ATTUNE_HOOK_COUNT];

/* The mapping in use, and in a forked child that of its parent. A signal handler may fork in
 * the middle of a measurement, and the child goes on with that: dm_live is zero by then. So a
 * count of dm_live.mapping says whether there is something, which is none any more, and where
 * that is says dm_parent. */
DM_HIDDEN extern struct dm_mapping dm_parent;

/* What this process maps is locked, as it asked by mlockall(2), or its parent did. */
DM_HIDDEN extern bool dm_locks_memory;

/* Makes forked children start with a zeroed dm_live: before anything is written there.
 * False: too old a kernel. */
DM_HIDDEN bool dm_live_wipe_in_children(void);
/* False: a C library in which dm_tid does not work. */
DM_HIDDEN bool dm_live_prepare(void);
/* Whether the process was under no seccomp filter then. */
DM_HIDDEN bool dm_live_unfiltered(void);
/* Whether the calling thread has put itself under seccomp since then. */
DM_HIDDEN bool dm_confined(void);
DM_HIDDEN void dm_live_publish(const struct dm_mapping *mapping);
/* Publishes a mapping in the place of the one before, if there was one: a
 * forked child's parent's, or that of a controller that has gone. */
DM_HIDDEN bool dm_live_replace(struct dm_mapping *mapping);
DM_HIDDEN void dm_go_inert(void);
/* Takes the mapping that a forked child has from its parent out of the child's reach. */
DM_HIDDEN void dm_leave_parent(void);
/* child.c: while there is a clock, for children. */
DM_HIDDEN void dm_child_prepare(void);
/* A forked child's hooks come here until it has registered or given up. */
DM_HIDDEN void dm_child_hook(void);
/* Whoever registers a process, of which one thread at a time may: false if another one
 * does. Then it is settled, or goes on as before. */
DM_HIDDEN bool dm_child_claim(uint32_t *before);
DM_HIDDEN void dm_child_settle(void);
DM_HIDDEN void dm_child_disclaim(uint32_t before);

DM_INLINE struct attune_point_control *dm_control(unsigned point) {
    return (struct attune_point_control *)((char *)&dm_static_control[point] + dm_live.delta);
}

DM_INLINE uint32_t dm_word(unsigned point) {
    return __atomic_load_n(&dm_control(point)->word, __ATOMIC_RELAXED);
}

/* ---- state of the thread (thread.c) ----------------------------------- */

/* In place of a generation. */
#define DM_NO_GENERATION UINT64_MAX /* no slot */
#define DM_BUSY (UINT64_MAX - 1)    /* inside a measurement or a command */

struct dm_thread {
    uint64_t generation; /* == dm_live.generation: the slot is ours */
    /* Records fit from next up to limit: neither the ring's end nor an unread
     * one is in the way. Equal: not known, or no ring. */
    struct attune_record *next, *limit;
    struct attune_slot *slot;
    struct attune_record *ring; /* NULL: none yet */
    uint64_t owned;             /* generation of slot, whether busy or not */
    uint64_t starved;           /* generation that had no slot for us */
    uint32_t starved_hits;      /* since then */
    uint32_t lost_calls;        /* as calls of an aggregate, of hits that cannot be taken */
    uint32_t nested_hits;       /* hits while busy, since ... */
    uint64_t nested_head;       /* ... the ring's head was here */
    uint32_t looks;             /* at the mailbox since ... */
    uint32_t looks_beat;        /* ... this beat of the controller */
    uint32_t nested_points;     /* safe points in one */
    uintptr_t handler_frame;    /* where it was found last; handler.c */
    uint8_t in_command;
    uint8_t attends; /* at a safe point */
    uint8_t ending;  /* rounds of key destructors seen */
    uint8_t ended;
    uint8_t resolving; /* inside dlsym for the real functions */
};

DM_HIDDEN extern __thread struct dm_thread dm_thread __attribute__((tls_model("initial-exec")));

/* Finds where the C library keeps a thread's id, and its function for threads. */
DM_HIDDEN void dm_thread_look_up(void);
/* The thread's id as the C library keeps it, without a system call, for which a
 * seccomp filter might kill the program. In a child of vfork it is the parent's, and
 * after a fork past the C library as well. 0: not known. */
DM_HIDDEN int32_t dm_tid(void);

/* Creates the key whose destructor closes slots. Call once per program. */
DM_HIDDEN void dm_thread_prepare(void);
/* Gives the thread a slot; false if there is none for it. */
DM_HIDDEN bool dm_thread_acquire(struct dm_thread *thread);
/* Counts a hit of a thread without a slot. */
DM_HIDDEN void dm_lose_no_slot(void);
/* Counts a hit of a thread that has no slot or is busy, if its turn had come where one call
 * in some is looked at. The caller has looked at the range, if the value is known; nobody
 * looks at a program's conditions, so that some that are counted would not have held. */
DM_HIDDEN void dm_lose(struct dm_thread *thread, uint32_t word, uint32_t mask);
/* The thread is busy. True: no longer, what it was busy with is dead. */
DM_HIDDEN bool dm_thread_recover(struct dm_thread *thread);
/* Finds room in the ring, or a ring; sets next and limit. False: there is none,
 * and the record is lost. */
DM_HIDDEN bool dm_ring_room(struct dm_thread *thread);
/* True: the ring has room for so many records, from head on, going round. False:
 * they are lost, and counted as one. */
DM_HIDDEN bool dm_ring_holds(struct dm_thread *thread, uint64_t records);

/* ---- safe points (mailbox.c) ------------------------------------------ */

#define DM_CTL_ATTEND (ATTUNE_CTL_REGISTER | ATTUNE_CTL_MAILBOX)
#define DM_CTL_MEASURE (ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_EVENT)
/* Somebody wants to know how long the call takes. */
#define DM_CTL_TIMES (ATTUNE_CTL_DURATION | ATTUNE_CTL_TIMED)

/* Where a thread is. */
struct dm_safe_point {
    unsigned point;
    uint32_t family;
};

/* Does what the word's DM_CTL_ATTEND bits ask for; returns the bits left. */
DM_HIDDEN uint32_t dm_attend_at(const struct dm_safe_point *here, uint32_t word);
/* Runs the commands that may run here. */
DM_HIDDEN void dm_mailbox_run(const struct dm_safe_point *here);
/* Runs those for a stopped thread, which calls it; 0 if it stands where it
 * cannot. */
DM_HIDDEN uint64_t dm_attend_stopped(void);
/* Runs those for the start gate; mapping need not be the process's yet. */
DM_HIDDEN void dm_mailbox_run_in_gate(const struct dm_mapping *mapping);

DM_INLINE uint32_t dm_attend(unsigned point, uint32_t family, uint32_t word) {
    struct dm_safe_point here = {.point = point, .family = family};
    return dm_attend_at(&here, word);
}

/* mailbox.c: keeps signals back, but for those that must not be (signals.h). False: that
 * cannot be done. */
DM_HIDDEN bool dm_hold_signals(uint64_t *before);
DM_HIDDEN void dm_release_signals(const uint64_t *before);

/* handler.c: whether the thread may be in a signal handler. About 1 us per page of its
 * stack, less where it was in the same handler before. */
DM_HIDDEN bool dm_in_handler(void);

/* memory.c: accesses to a word that fail with an errno value where a plain one would
 * kill the program. */
DM_HIDDEN int dm_memory_load(uint64_t address, uint64_t *value);
DM_HIDDEN int dm_memory_store_got(uint64_t address, uint64_t value, uint64_t expected, bool relro,
                                  uint64_t *old);

/* origin.c: whether a word is the GOT slot still that it was. True where that is
 * not known. Asks the kernel, about 1 us. */
DM_HIDDEN bool dm_origin_holds(const struct attune_origin *origin);

/* Copies from several places to one, and returns how many bytes, or an error of the kernel's. */
struct iovec;
DM_HIDDEN long dm_memory_read(const struct iovec *to, const struct iovec *from, unsigned parts);

/* Copies bytes from anywhere; returns how many could be read from the first on.
 * Asks the kernel, about 2 us. */
DM_HIDDEN uint32_t dm_memory_copy(void *to, uint64_t address, uint32_t size);

DM_HIDDEN int dm_memory_map(uint64_t address, uint64_t size);

/* stubs.c: binds a stub for good. Returns 0 or an errno value. */
DM_HIDDEN extern uint64_t dm_stub_target[ATTUNE_STUB_COUNT];
DM_HIDDEN int dm_stub_bind(uint64_t index, uint64_t function);
DM_HIDDEN void dm_stub_prepare(void);

/* real.c: looks the real functions up, unless a hook has: before main, since a
 * signal handler that comes in the middle of that finds none, or jumps out of it. */
DM_HIDDEN void dm_real_resolve_preloaded(void);

/* hooks_lock.c: fills dm_hook_entry, once the real functions are known. */
DM_HIDDEN void dm_lock_prepare(void);

/* real.c: takes the real functions that the controller found, and looks the
 * others up: for a library that came by dlopen RTLD_NEXT means nothing. False:
 * there is no malloc to be found. One thread at a time. */
DM_HIDDEN bool dm_real_resolve_attached(const struct attune_attach_real *known, uint32_t count);
/* behind.c: notes what the hooks go on to, for dm_real_behind and the controller. */
DM_HIDDEN void dm_real_note_behind(void);
/* The function that the hook of a name goes on to; 0: there is no such hook. */
DM_HIDDEN uint64_t dm_real_behind(const char *name);

/* filters.c: whether the program was executed under more seccomp filters than known says
 * (ATTUNE_FILTERS; NULL: none), or that cannot be told. */
DM_HIDDEN bool dm_sandboxed(const char *known);

/* ---- environment.c ---------------------------------------------------- */

/* Takes us out of the environment of programs that this one starts: entries of
 * LD_PRELOAD with the same base name as library, and our own variables. That is
 * done where there is nothing to come to, and where ATTUNE_ONCE says that only the
 * program itself is meant. */
DM_HIDDEN void dm_environment_clean(char **environment, const char *library);

#endif
