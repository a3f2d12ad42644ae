/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the programs need of the BPF environment: fixed-width types, the map
 * declaration macros and the helper functions in use, by number. Written by
 * hand so that neither libbpf's headers nor a generated vmlinux.h are needed
 * to build.
 */
#ifndef ATTUNE_BPF_H
#define ATTUNE_BPF_H

typedef signed char s8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
typedef _Bool bool;

enum { false = 0, true = 1 };

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

/* Kernel structures name only the members in use; the loader finds their
 * true offsets in the running kernel's type information. */
#define KERNEL_STRUCT __attribute__((preserve_access_index))

enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
    BPF_ANY = 0,
    BPF_F_NO_PREALLOC = 1 << 0,
    BPF_F_MMAPABLE = 1 << 10,
    BPF_RB_NO_WAKEUP = 1 << 0,
};

struct bpf_pidns_info {
    u32 pid;
    u32 tgid;
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
                                   u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_get_ns_current_pid_tgid)(u64 dev, u64 ino, struct bpf_pidns_info *info,
                                           u32 size) = (void *)120;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;

#endif
