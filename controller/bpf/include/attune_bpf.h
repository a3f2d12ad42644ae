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

#ifdef __bpf__
/* The names of <stdint.h>, for the headers in attune/. */
typedef u8 uint8_t;
typedef u16 uint16_t;
typedef s32 int32_t;
typedef u32 uint32_t;
typedef s64 int64_t;
typedef u64 uint64_t;
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
#define ATTUNE_PROGRAM_NO_STDINT
#endif
/* Their functions take the form that the verifier accepts, also in native tests. */
#define ATTUNE_FOR_BPF

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#define NOINLINE __attribute__((noinline))

/* Before a number, 64 bits of it, is compared with its bound: the compiler would
 * compare a copy, or nothing if it knows the bound by itself, and the verifier
 * not take the number for bounded. */
#define TELL_VERIFIER(number) __asm__ volatile("" : "+r"(number))

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

/* Kernel structures name only the members in use; the loader finds their
 * true offsets in the running kernel's type information. */
#define KERNEL_STRUCT __attribute__((preserve_access_index))

enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_LPM_TRIE = 11,
    BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
    BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
    BPF_ANY = 0,
    BPF_NOEXIST = 1,
    BPF_F_NO_PREALLOC = 1 << 0,
    BPF_F_MMAPABLE = 1 << 10,
};

enum {
    BPF_RB_NO_WAKEUP = 1 << 0,
};

struct task_struct;

/* Lets a program read an object of the kernel's as what it is, by its number in
 * the kernel's type information; no call is left of it. From Linux 6.2 on; where
 * it is not there the loader takes it out, and it must not be reached. */
extern void *bpf_rdonly_cast(const void *object, u32 type) __attribute__((section(".ksyms")));

struct bpf_pidns_info {
    u32 pid;
    u32 tgid;
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
                                   u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*bpf_send_signal_thread)(u32 signal) = (void *)117;
static u64 (*bpf_jiffies64)(void) = (void *)118;
static long (*bpf_get_ns_current_pid_tgid)(u64 dev, u64 ino, struct bpf_pidns_info *info,
                                           u32 size) = (void *)120;
static u64 (*bpf_ktime_get_boot_ns)(void) = (void *)125;
static long (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;

#endif
