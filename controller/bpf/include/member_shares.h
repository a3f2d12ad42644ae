/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Who has how many of the members. An eighth of the room is everybody's for certain, and more
 * as long as half of the room is free: whoever forks without end has half of it at most, even
 * alone on a node, and takes no room from others.
 */
#ifndef ATTUNE_MEMBER_SHARES_H
#define ATTUNE_MEMBER_SHARES_H

#include "attune_bpf.h"

/* Slots with the same remainder have one share. */
#define MEMBER_SHARES 1024

/* The room for members; 0: nobody has shares. */
const volatile u32 shared_room = 0;

struct member_share {
    s64 members;
    u64 refused; /* children that were not followed for want of a share */
};

/* Behind the shares what all of them have together. User space counts those that it adds. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, MEMBER_SHARES + 1);
    __type(key, u32);
    __type(value, struct member_share);
} member_shares SEC(".maps");

INLINE struct member_share *share_at(u32 index) {
    return bpf_map_lookup_elem(&member_shares, &index);
}

INLINE void count_members(u32 slot, s64 more) {
    struct member_share *own, *all;

    if (!shared_room)
        return;
    own = share_at(slot % MEMBER_SHARES);
    all = share_at(MEMBER_SHARES);
    if (!own || !all)
        return;
    __sync_fetch_and_add(&own->members, more);
    __sync_fetch_and_add(&all->members, more);
}

/* Whether who has some of the room may have one more, of which all have some together. */
INLINE bool is_within_share(s64 own, s64 all) {
    return own < shared_room / 8 || all < shared_room / 2;
}

/* Whether a slot may have one more member. CPUs that ask at the same time may all be let. */
INLINE bool has_share(u32 slot) {
    struct member_share *own, *all;

    if (!shared_room)
        return true;
    own = share_at(slot % MEMBER_SHARES);
    all = share_at(MEMBER_SHARES);
    if (!own || !all || is_within_share(own->members, all->members))
        return true;
    __sync_fetch_and_add(&own->refused, 1);
    return false;
}

#endif
