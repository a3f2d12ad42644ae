/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The members of kernel structures that the programs read. */
#ifndef ATTUNE_KERNEL_TYPES_H
#define ATTUNE_KERNEL_TYPES_H

#include "attune_bpf.h"

/* One member of a kernel structure, 0 if it cannot be read. */
#define READ(from, member)                                                                         \
    ({                                                                                             \
        typeof((from)->member) value_ = 0;                                                         \
        bpf_probe_read_kernel(&value_, sizeof(value_), &(from)->member);                           \
        value_;                                                                                    \
    })

typedef struct {
    int counter;
} atomic_t;

typedef struct {
    u32 val;
} kuid_t;

struct cred {
    kuid_t uid;
} KERNEL_STRUCT;

struct ns_common {
    u32 inum;
} KERNEL_STRUCT;

struct pid_namespace {
    struct ns_common ns;
} KERNEL_STRUCT;

/* Not relocated: walked as an array, so its size must be the kernel's. It has
 * been this pair since namespaces have existed. */
struct upid {
    s32 nr;
    struct pid_namespace *ns;
};

struct pid {
    u32 level;
    struct upid numbers[1];
} KERNEL_STRUCT;

struct qstr {
    const char *name;
} KERNEL_STRUCT;

struct dentry {
    struct qstr d_name;
#ifdef ATTUNE_FILES
    struct dentry *d_parent;
#endif
} KERNEL_STRUCT;

#ifdef ATTUNE_FILES
struct vfsmount {
    struct dentry *mnt_root;
} KERNEL_STRUCT;

struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
} KERNEL_STRUCT;
#endif

struct path {
    struct dentry *dentry;
#ifdef ATTUNE_FILES
    struct vfsmount *mnt;
#endif
} KERNEL_STRUCT;

struct super_block {
    u32 s_dev;
#ifdef ATTUNE_FILES
    unsigned long s_magic;
#endif
} KERNEL_STRUCT;

struct inode {
    struct super_block *i_sb;
    unsigned long i_ino;
#ifdef ATTUNE_FILES
    u16 i_mode;
    u32 i_generation;
#endif
} KERNEL_STRUCT;

struct file {
    struct path f_path;
    struct inode *f_inode;
#ifdef ATTUNE_FILES
    void *private_data;
#endif
} KERNEL_STRUCT;

#ifdef ATTUNE_FILES
struct fdtable {
    u32 max_fds;
    struct file **fd;
} KERNEL_STRUCT;

struct files_struct {
    struct fdtable *fdt;
} KERNEL_STRUCT;

struct sock_common {
    u16 skc_family;
} KERNEL_STRUCT;

struct sock {
    struct sock_common __sk_common;
} KERNEL_STRUCT;

struct socket {
    struct sock *sk;
} KERNEL_STRUCT;

/* Of x86. */
struct thread_info {
    u32 status;
} KERNEL_STRUCT;

struct fs_struct {
    struct path root;
} KERNEL_STRUCT;
#endif

struct linux_binprm {
    struct file *file;
    const char *filename;
} KERNEL_STRUCT;

#ifdef ATTUNE_CALLS
/* The first place of this area is where returns lead that the kernel is to see. */
struct xol_area {
    unsigned long vaddr;
} KERNEL_STRUCT;

struct uprobes_state {
    struct xol_area *xol_area;
} KERNEL_STRUCT;

/* Of one thread. */
struct uprobe_task {
    unsigned int depth; /* calls whose return the kernel is to see */
} KERNEL_STRUCT;
#endif

/* From Linux 6.2 on. */
struct percpu_counter {
    s64 count;
} KERNEL_STRUCT;

struct mm_struct {
    unsigned long arg_start;
    unsigned long arg_end;
    struct file *exe_file;
#ifdef ATTUNE_CALLS
    struct uprobes_state uprobes_state;
#endif
#ifdef ATTUNE_ACCOUNT
    unsigned long hiwater_rss; /* pages */
    unsigned long hiwater_vm;
    unsigned long total_vm;
    struct percpu_counter rss_stat[4]; /* file, anonymous, swap, shared memory */
#endif
} KERNEL_STRUCT;

#define SIGNAL_GROUP_EXIT 0x00000004

struct signal_struct {
    atomic_t live;
    int group_exit_code;
    u32 flags;
#ifdef ATTUNE_ACCOUNT
    unsigned long maxrss; /* pages */
#endif
} KERNEL_STRUCT;

struct bpf_uprobe {
    u64 cookie;
} KERNEL_STRUCT;

struct bpf_run_ctx;

typedef struct {
    unsigned long sig[1];
} sigset_t;

/* Begins with a struct bpf_run_ctx. */
struct bpf_uprobe_multi_run_ctx {
    struct bpf_uprobe *uprobe;
} KERNEL_STRUCT;

/* Of one thread, without its children. */
struct task_io_accounting {
    u64 rchar;
    u64 wchar;
    u64 syscr;
    u64 syscw;
    u64 read_bytes;
    u64 write_bytes;
    u64 cancelled_write_bytes;
} KERNEL_STRUCT;

struct sched_entity {
    u64 sum_exec_runtime;
} KERNEL_STRUCT;

struct sched_info {
    unsigned long long run_delay;
} KERNEL_STRUCT;

/* Flags of threads that the kernel makes for a process without the tracepoint of forks:
 * workers of io_uring, and from Linux 6.4 on those of vhost. Before that the second bit
 * has no meaning, but up to 5.16, where a task may have it that loads a module. */
#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000

struct task_struct {
    u32 ptrace; /* options of its tracer; 0: it has none */
    int exit_code;
    s32 pid;
    s32 tgid;
    u64 start_boottime;
    struct task_struct *real_parent;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    struct cred *cred;
    struct mm_struct *mm;
    struct signal_struct *signal;
    sigset_t blocked;
    struct bpf_run_ctx *bpf_ctx;
    char comm[16];
#ifdef ATTUNE_CALLS
    struct uprobe_task *utask;
#endif
#ifdef ATTUNE_ACCOUNT
    u32 __state;
    u32 flags;
    struct sched_entity se;
    struct sched_info sched_info;
    u64 utime;
    u64 stime;
    unsigned long nvcsw;
    unsigned long nivcsw;
    unsigned long min_flt;
    unsigned long maj_flt;
    struct task_io_accounting ioac;
#endif
#ifdef ATTUNE_FILES
    struct thread_info thread_info;
    struct fs_struct *fs;
    struct files_struct *files;
#endif
} KERNEL_STRUCT;

#endif
