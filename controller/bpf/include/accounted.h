/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The processes that an accounting object accounts for: what each took, until its end is
 * told with it, or added to that of the process that it came of.
 */
#ifndef ATTUNE_ACCOUNTED_H
#define ATTUNE_ACCOUNTED_H

#include "attune_bpf.h"
#include "kernel_types.h"
#include "member_shares.h"
#include "taken.h"

enum process_event_kind {
    PROCESS_FORK = 1,
    PROCESS_EXEC = 2,
    PROCESS_EXIT = 3,
};

struct process_event {
    u64 time;       /* CLOCK_MONOTONIC, ns                                  */
    u64 start_time; /* of the process, ns since boot: identity with the pid */
    enum process_event_kind kind;
    u32 slot;   /* job slot of the member                               */
    s32 tgid;   /* process that it is about; for fork: the child        */
    s32 parent; /* tgid of its parent                                   */
    u32 uid;
    s32 status; /* exit: wait status as waitpid(2) gives it             */
    char comm[16];
    u32 member; /* 1: of slot; 0: it executed a file of a wanted name   */
};

/* What a process_event of kind PROCESS_EXIT is for a process that was accounted for. */
struct exit_event {
    struct process_event event;
    struct taken taken; /* in its whole life, and what is unseen        */
    u32 unseen;         /* processes that came of it and ended, members never   */
    u32 whole;          /* 0: there were more, which found no room              */
};

/* Whether this object accounts for processes: it then has a program at each switch. */
const volatile bool accounting = false;

/* A process that is accounted for; its number in the initial pid namespace is its key. */
struct accounted {
    struct exit_event end; /* as it will be told */
    s32 of;                /* whose it is if it ends unseen; its own key: nobody's */
    s32 living;            /* threads that are not done with */
    u16 share;             /* of the accounts, in which it is */
    u16 ended;             /* its last thread has passed the exit tracepoint */
    u32 told;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, s32);
    __type(value, struct accounted);
} accounts SEC(".maps");

/* How many of the accounts came of users whose ids have the same remainder; behind them, how
 * many there are. Children stay in the share of the process that they came of, whatever user they
 * become: a user who has many ids has one share. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MEMBER_SHARES + 1);
    __type(key, u32);
    __type(value, s64);
} account_shares SEC(".maps");

INLINE s64 *accounts_at(u32 index) { return bpf_map_lookup_elem(&account_shares, &index); }

INLINE void count_accounts(u32 share, s64 more) {
    s64 *own = accounts_at(share), *all = accounts_at(MEMBER_SHARES);

    if (!own || !all)
        return;
    __sync_fetch_and_add(own, more);
    __sync_fetch_and_add(all, more);
}

INLINE struct accounted *account_of(struct task_struct *task) {
    s32 key = READ(task, tgid);

    return accounting ? bpf_map_lookup_elem(&accounts, &key) : 0;
}

/* Accounts for a process, if its share of the accounts has room. */
INLINE bool account_for(struct task_struct *task, s32 of, u32 share) {
    struct accounted fresh = {.of = of, .living = 1, .share = share, .end.whole = 1};
    s64 *own = accounts_at(share), *all = accounts_at(MEMBER_SHARES);
    s32 key = READ(task, tgid);

    if (!own || !all || !is_within_share(*own, *all))
        return false;
    if (bpf_map_update_elem(&accounts, &key, &fresh, BPF_NOEXIST))
        return false;
    count_accounts(share, 1);
    return true;
}

/* Accounts for a process from the program on that it executes. */
INLINE void account_founder(struct task_struct *task) {
    u32 uid = READ(READ(task, cred), uid.val);

    account_for(task, READ(task, tgid), uid % MEMBER_SHARES);
}

/* A child of a process that is accounted for is, too. As a member it stands for
 * itself, else for whom its parent does. */
INLINE void account_child(struct accounted *parent, struct task_struct *child, bool member) {
    s32 of = member ? READ(child, tgid) : parent->of;

    if (!account_for(child, of, parent->share) && !member)
        parent->end.whole = 0;
}

INLINE void forget_account(s32 key, u32 share) {
    if (!bpf_map_delete_elem(&accounts, &key))
        count_accounts(share, -1);
}

/* Adds what a process took that nobody was told of. */
INLINE void add_unseen(struct exit_event *to, const struct exit_event *from) {
    const u64 *part = (const u64 *)&from->taken;
    u64 *sum = (u64 *)&to->taken;

    for (u32 i = 0; i < sizeof(to->taken) / sizeof(*sum); i++)
        __sync_fetch_and_add(&sum[i], part[i]);
    __sync_fetch_and_add(&to->unseen, 1 + from->unseen);
    if (!from->whole)
        to->whole = 0;
}

#endif
