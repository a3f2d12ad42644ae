/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Follows the processes of jobs through fork, exec and exit. User space names
 * the roots; children of members become members in the kernel, at fork, so
 * that none can run away between its birth and the controller's next look.
 * Nothing but members causes an event; in a node-wide object, processes also do
 * that execute a file of a wanted name, whoever they are.
 *
 * A node-wide object may also account for whatever comes of these, from their exec on:
 * before user space has heard of a process, and made it a member, it may have started
 * others which have ended. The end of a process that is accounted for is told
 * when the kernel is done with its last thread.
 *
 * Raw tracepoints rather than BTF-typed ones (tp_btf): the kernel takes 4 ms
 * to verify one program that walks typed pointers, and the loader 20 ms to
 * find the tracepoints' types. Measured, all of it at the start of a run.
 */
#define ATTUNE_ACCOUNT
#include "accounted.h"
#include "attune_bpf.h"
#include "kernel_types.h"
#include "member_shares.h"
#include "tasks.h"

/* bpf_probe_read_kernel() is for programs under the GPL only; this file may
 * be used under it. */
const char program_license[] SEC("license") = "GPL";

#define STARTED_AS_SIZE 256
#define ARGUMENTS_SIZE 512

/* What a process_event of kind PROCESS_EXEC is, unless it is in a node-wide
 * object and the name is not wanted. Texts are cut where they do not fit. */
struct exec_event {
    struct process_event event;
    u64 inode;  /* of the program: of a script its interpreter          */
    u32 device; /* as the kernel has it: major << 20 | minor            */
    u32 arguments_size;
    char started_as[STARTED_AS_SIZE]; /* path as execve() was given it  */
    char arguments[ARGUMENTS_SIZE];   /* as /proc/PID/cmdline has them  */
};

/* bpf2go emits the types that some global refers to. */
const struct exit_event *unused_exit_event __attribute__((unused));
const struct process_event *unused_process_event __attribute__((unused));
const struct exec_event *unused_exec_event __attribute__((unused));

/* Events that found the ring buffer full. */
u64 lost_events;
/* Children that found no room among the members: not followed. */
u64 lost_members;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, s32);
    __type(value, u32);
} job_tgids SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1024 * 1024);
} process_ring SEC(".maps");

/* Processes, as the controller has them, that are accounted for from their next exec on. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, s32);
    __type(value, u32);
} handed_over SEC(".maps");

/* Beginnings of wanted names, up to 15 characters; a whole name ends with its
 * zero byte. The value is the user who is meant, or ANY_USER. */
struct name_key {
    u32 bits;
    char name[16];
};

#define ANY_USER 0xffffffffu

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct name_key);
    __type(value, u32);
} wanted_names SEC(".maps");

INLINE void describe(struct process_event *event, enum process_event_kind kind,
                     struct task_struct *task, s32 tgid) {
    event->time = bpf_ktime_get_ns();
    event->start_time = READ(READ(task, group_leader), start_boottime);
    event->kind = kind;
    event->tgid = tgid;
    event->parent = process_id(READ(task, real_parent));
    event->uid = READ(READ(task, cred), uid.val);
    bpf_probe_read_kernel(event->comm, sizeof(event->comm), &task->comm);
}

/* Tells of a member. */
INLINE void emit(enum process_event_kind kind, u32 slot, struct task_struct *task, s32 tgid,
                 s32 status) {
    struct process_event *event;

    event = bpf_ringbuf_reserve(&process_ring, sizeof(*event), 0);
    if (!event) {
        __sync_fetch_and_add(&lost_events, 1);
        return;
    }
    describe(event, kind, task, tgid);
    event->slot = slot;
    event->status = status;
    event->member = 1;
    bpf_ringbuf_submit(event, 0);
}

/* Makes a child a member of a slot, if there is room. */
INLINE bool follow_child(u32 slot, s32 tgid) {
    if (!has_share(slot))
        return false;
    if (bpf_map_update_elem(&job_tgids, &tgid, &slot, BPF_ANY)) {
        __sync_fetch_and_add(&lost_members, 1);
        return false;
    }
    count_members(slot, 1);
    return true;
}

SEC("raw_tp/sched_process_fork")
int process_fork(u64 *ctx) {
    struct task_struct *parent = (struct task_struct *)ctx[0];
    struct task_struct *child = (struct task_struct *)ctx[1];
    struct accounted *known = account_of(parent);
    u32 *found, slot = 0;
    bool member;
    s32 tgid;

    if (READ(child, tgid) == READ(parent, tgid)) { /* a thread */
        if (known)
            __sync_fetch_and_add(&known->living, 1);
        return 0;
    }
    tgid = process_id(parent);
    found = bpf_map_lookup_elem(&job_tgids, &tgid);
    if (found)
        slot = *found;
    tgid = process_id(child);
    member = found && follow_child(slot, tgid);
    if (known)
        account_child(known, child, member);
    if (member)
        emit(PROCESS_FORK, slot, child, tgid, 0);
    return 0;
}

INLINE u32 read_arguments(struct exec_event *event, struct task_struct *task) {
    struct mm_struct *mm = READ(task, mm);
    u64 from = READ(mm, arg_start), size = READ(mm, arg_end) - from;

    if (size > ARGUMENTS_SIZE)
        size = ARGUMENTS_SIZE;
    if (bpf_probe_read_user(event->arguments, size, (void *)from))
        return 0;
    return size;
}

/* Tells what a process executes, of a member's slot or of none. */
INLINE void emit_exec(u32 *slot, struct task_struct *task, s32 tgid, struct linux_binprm *program) {
    struct file *file = READ(program, file);
    struct exec_event *event;
    struct inode *inode;

    event = bpf_ringbuf_reserve(&process_ring, sizeof(*event), 0);
    if (!event) {
        __sync_fetch_and_add(&lost_events, 1);
        return;
    }
    describe(&event->event, PROCESS_EXEC, task, tgid);
    event->event.slot = slot ? *slot : 0;
    event->event.member = slot != 0;
    event->event.status = 0;
    inode = READ(file, f_inode);
    event->inode = READ(inode, i_ino);
    event->device = READ(READ(inode, i_sb), s_dev);
    event->started_as[0] = 0;
    bpf_probe_read_kernel_str(event->started_as, sizeof(event->started_as),
                              READ(program, filename));
    event->arguments_size = read_arguments(event, task);
    bpf_ringbuf_submit(event, 0);
}

SEC("raw_tp/sched_process_exec")
int process_exec(u64 *ctx) {
    struct task_struct *task = (struct task_struct *)ctx[0];
    s32 tgid = process_id(task);
    u32 *slot = bpf_map_lookup_elem(&job_tgids, &tgid);

    if (slot)
        emit_exec(slot, task, tgid, (struct linux_binprm *)ctx[2]);
    return 0;
}

INLINE bool wanted(struct name_key *key, u32 uid) {
    u32 *user = bpf_map_lookup_elem(&wanted_names, key);

    return user && (*user == ANY_USER || *user == uid);
}

/* Whether a file of this name is wanted: as it was started, which is a script's
 * own name and may be a symbolic link's, or as the program's file is called. */
INLINE bool wanted_program(struct task_struct *task, struct file *file) {
    u32 uid = READ(READ(task, cred), uid.val);
    struct name_key key = {.bits = 8 * sizeof(key.name)};

    bpf_probe_read_kernel(key.name, sizeof(key.name), &task->comm);
    if (wanted(&key, uid))
        return true;
    __builtin_memset(key.name, 0, sizeof(key.name));
    bpf_probe_read_kernel_str(key.name, sizeof(key.name),
                              READ(READ(file, f_path.dentry), d_name.name));
    return wanted(&key, uid);
}

/* Takes the place of process_exec() in a node-wide object. */
SEC("raw_tp/sched_process_exec")
int process_exec_named(u64 *ctx) {
    struct task_struct *task = (struct task_struct *)ctx[0];
    struct linux_binprm *program = (struct linux_binprm *)ctx[2];
    s32 tgid = process_id(task);
    u32 *slot = bpf_map_lookup_elem(&job_tgids, &tgid);

    if (!tgid)
        return 0; /* of a pid namespace beside ours */
    if (wanted_program(task, READ(program, file)))
        emit_exec(slot, task, tgid, program);
    else if (slot)
        emit(PROCESS_EXEC, *slot, task, tgid, 0);
    else if (!bpf_map_lookup_elem(&handed_over, &tgid))
        return 0;
    bpf_map_delete_elem(&handed_over, &tgid);
    if (accounting && !account_of(task))
        account_founder(task);
    return 0;
}

SEC("raw_tp/sched_process_exit")
int process_exit(u64 *ctx) {
    struct task_struct *task = (struct task_struct *)ctx[0];
    struct accounted *known;
    u32 *found, slot;
    s32 tgid;

    if (READ(READ(task, signal), live.counter) > 0)
        return 0; /* other threads live on */
    tgid = process_id(task);
    known = account_of(task);
    found = bpf_map_lookup_elem(&job_tgids, &tgid);
    if (!found) {
        if (known)
            known->ended = 1;
        return 0;
    }
    slot = *found;
    /* Two last threads may both see live == 0: one of them deletes. */
    if (bpf_map_delete_elem(&job_tgids, &tgid))
        return 0;
    count_members(slot, -1);
    if (!known) {
        emit(PROCESS_EXIT, slot, task, tgid, wait_status(task));
        return 0;
    }
    describe(&known->end.event, PROCESS_EXIT, task, tgid);
    known->end.event.slot = slot;
    known->end.event.status = wait_status(task);
    known->end.event.member = 1;
    known->ended = 1;
    return 0;
}

INLINE void tell_end(const struct exit_event *end) {
    struct exit_event *out = bpf_ringbuf_reserve(&process_ring, sizeof(*out), 0);

    if (!out) {
        __sync_fetch_and_add(&lost_events, 1);
        return;
    }
    *out = *end;
    bpf_ringbuf_submit(out, 0);
}

/* For accounting objects. Where threads that an exec has killed are done with only after
 * it, fewer live than there are. */
SEC("raw_tp/sched_switch")
int process_switch(u64 *ctx) {
    struct task_struct *task = (struct task_struct *)ctx[1];
    struct accounted *known, *founder;
    s32 key, left;

    if (!is_done_with(task))
        return 0;
    known = account_of(task);
    if (!known)
        return 0;
    add_taken(&known->end.taken, task);
    if (is_kernels_worker(task))
        return 0;
    left = __sync_fetch_and_sub(&known->living, 1) - 1;
    if (!known->ended || left > 0 || __sync_fetch_and_add(&known->told, 1))
        return 0;
    key = READ(task, tgid);
    if (known->end.event.member) {
        tell_end(&known->end);
    } else if (known->of != key) {
        founder = bpf_map_lookup_elem(&accounts, &known->of);
        if (founder)
            add_unseen(&founder->end, &known->end);
    }
    forget_account(key, known->share);
    return 0;
}
