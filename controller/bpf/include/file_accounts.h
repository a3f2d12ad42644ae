/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The files that an accounted tree used, with their names. */
#ifndef ATTUNE_FILE_ACCOUNTS_H
#define ATTUNE_FILE_ACCOUNTS_H

#include "kernel_types.h"

struct file_key {
    u64 inode;
    u32 device; /* as the kernel numbers it: 12 bits, 20 bits */
    u32 generation;
};

struct file_account {
    struct file_key key;
    u64 read_bytes;
    u64 written_bytes;
    u64 read_calls;
    u64 written_calls;
    u64 sent_bytes;     /* of read_bytes: by sendfile, splice, copy_file_range    */
    u64 received_bytes; /* of written_bytes: likewise                            */
    u64 mapped_bytes;   /* that mmap was asked for                               */
    u64 opens;
    u64 executions;
    u64 maps;
    u32 mode; /* 0: not in use */
    u32 named;
};

#define NAME_SIZE 256
#define PATH_SIZE 4096

/* Names of a path, the last one first, each with a 0 at its end. */
struct file_name {
    u32 at;    /* in file_accounts */
    u32 whole; /* the root was reached */
    u32 length;
    char text[PATH_SIZE + NAME_SIZE];
};

/* What is not told by file. */
struct file_totals {
    u64 received; /* bytes, by sockets of IPv4 and IPv6 */
    u64 sent;
    u64 unseen; /* set-ups of asynchronous calls, which do not pass here; calls of 32-bit programs
                 */
    u64 lost_calls; /* on files for which there was no room */
};

const struct file_name *unused_file_name __attribute__((unused));
const struct file_account *unused_file_account __attribute__((unused));

struct file_totals file_totals;

#define FILES 65536

u64 files_used; /* elements of file_accounts that were given out, or would have been */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, FILES);
    __type(key, u32);
    __type(value, struct file_account);
} file_accounts SEC(".maps");

/* Where a file is in file_accounts. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, FILES);
    __type(key, struct file_key);
    __type(value, u32);
} files SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 * 1024 * 1024);
} name_ring SEC(".maps");

/* A program runs with preemption off: one for each CPU is enough. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct file_name);
} scratch SEC(".maps");

INLINE struct mount *mount_of(struct vfsmount *inner) {
    return (void *)inner - __builtin_preserve_field_info(((struct mount *)0)->mnt, 0);
}

#define PATH_STEPS 256

struct walk {
    struct dentry *at, *root;
    struct vfsmount *in, *root_mount;
    u64 whole; /* the root was reached; u64: what is handed over has no gap */
};

/*
 * One step from a file to its root: 1 ends the walk. It is no static function, so that the
 * verifier looks at it by itself and not at each of the steps; bpf_loop is there from Linux
 * 5.17 on. The length is kept in the map, of which the verifier expects nothing.
 */
NOINLINE int walk_up(struct walk *walk) {
    u32 first = 0;
    struct file_name *name = bpf_map_lookup_elem(&scratch, &first);
    struct dentry *parent;
    struct mount *mount, *above;
    bool top, lone;
    u64 length;
    long size;

    if (!walk)
        return 1;
    parent = READ(walk->at, d_parent);
    mount = mount_of(walk->in);
    above = READ(mount, mnt_parent);
    top = walk->at == READ(walk->in, mnt_root);
    lone = !top && walk->at == parent; /* what memfd_create made, with a name of its own */
    /* The process' root, the last mount, or a root that is mounted nowhere. */
    walk->whole = (walk->at == walk->root && walk->in == walk->root_mount) ||
                  (top && (above == mount || !above)) || lone;
    if (walk->whole && !lone)
        return 1;
    if (top) {
        walk->at = READ(mount, mnt_mountpoint);
        walk->in = &above->mnt;
        return 0;
    }
    if (!name)
        return 1;
    length = name->length;
    TELL_VERIFIER(length);
    if (length >= PATH_SIZE)
        return 1;
    size = bpf_probe_read_kernel_str(name->text + length, NAME_SIZE, READ(walk->at, d_name.name));
    if (size <= 0)
        return 1;
    name->length = length + size;
    walk->at = parent;
    return lone;
}

/*
 * Hands over the name of the file that is at in file_accounts, as d_path() in the
 * kernel finds it. Returns 0 if that was done. Like others below it is no static
 * function, and its parameters are numbers.
 */
NOINLINE int tell_name(u64 file_at, u32 at) {
    u32 first = 0;
    struct file *file = (struct file *)file_at;
    struct file_name *name = bpf_map_lookup_elem(&scratch, &first);
    struct task_struct *task = bpf_get_current_task_btf();
    struct fs_struct *fs = READ(task, fs);
    struct walk walk = {
        .at = READ(file, f_path.dentry),
        .in = READ(file, f_path.mnt),
        .root = READ(fs, root.dentry),
        .root_mount = READ(fs, root.mnt),
    };
    u64 length;

    if (!name)
        return -1;
    name->length = 0;
    for (u32 i = 0; i < PATH_STEPS && !walk_up(&walk); i++)
        ;
    name->at = at;
    name->whole = walk.whole;
    length = (u64)name->length + __builtin_offsetof(struct file_name, text);
    TELL_VERIFIER(length);
    if (length > sizeof(*name))
        return -1;
    return bpf_ringbuf_output(&name_ring, name, length, BPF_RB_NO_WAKEUP);
}

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define PIPEFS_MAGIC 0x50495045
#define ANON_INODE_FS_MAGIC 0x09041934
#define AF_INET 2
#define AF_INET6 10

/* Instead of an element of file_accounts. */
#define AT_NOTHING 0xffffffff /* it is none that has a name */
#define AT_NETWORK 0xfffffffe /* a socket of IPv4 or IPv6   */
#define AT_LOST 0xfffffffd    /* there was no room          */

INLINE struct file_account *account_at(u32 at) { return bpf_map_lookup_elem(&file_accounts, &at); }

INLINE u32 at_socket(struct file *file) {
    struct socket *socket = READ(file, private_data);
    u16 family = READ(READ(socket, sk), __sk_common.skc_family);

    return family == AF_INET || family == AF_INET6 ? AT_NETWORK : AT_NOTHING;
}

/* Where a file of that key is in file_accounts; it is given an element if it has none. */
INLINE u32 at_key(struct file_key *key, u32 mode) {
    u32 *known = bpf_map_lookup_elem(&files, key), at;
    struct file_account *account;

    if (known)
        return *known;
    at = __sync_fetch_and_add(&files_used, 1);
    account = account_at(at);
    if (!account)
        return AT_LOST;
    account->key = *key;
    account->mode = mode;
    if (!bpf_map_update_elem(&files, key, &at, BPF_NOEXIST))
        return at;
    account->mode = 0; /* another CPU was first, or there is no memory */
    known = bpf_map_lookup_elem(&files, key);
    return known ? *known : AT_LOST;
}

INLINE void read_key(struct file *file, struct file_key *key) {
    struct inode *inode = READ(file, f_inode);

    key->inode = READ(inode, i_ino);
    key->device = READ(READ(inode, i_sb), s_dev);
    key->generation = READ(inode, i_generation);
}

NOINLINE u32 at_file(u64 file_at) {
    struct file *file = (struct file *)file_at;
    struct inode *inode = READ(file, f_inode);
    u32 mode = READ(inode, i_mode);
    struct file_key key;
    u64 magic;

    if ((mode & S_IFMT) == S_IFSOCK)
        return at_socket(file);
    magic = READ(READ(inode, i_sb), s_magic);
    if (magic == PIPEFS_MAGIC || magic == ANON_INODE_FS_MAGIC || !(mode & S_IFMT))
        return AT_NOTHING;
    read_key(file, &key);
    return at_key(&key, mode);
}

/* Hands over the name of the file if that was not done. */
INLINE void name_account(struct file_account *account, u64 file, u32 at) {
    if (!account->named && !__sync_val_compare_and_swap(&account->named, 0, 1) &&
        tell_name(file, at))
        account->named = 0; /* at its next use, then */
}

#endif
