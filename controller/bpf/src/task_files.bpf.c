/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the processes of an accounted tree read and wrote of each file, and what went
 * over the network, by what each system call returned. A file is its inode: one that
 * was renamed or unlinked, or whose descriptor several processes share, is one file,
 * with the name that it had when it was first seen.
 *
 * The descriptor is looked up when the call is done: a thread that closes one which
 * another thread is reading from has the bytes go to none, or to the file that has
 * the number then. Every system call of the machine passes here; those of processes
 * outside of the tree pay one lookup.
 */
#define ATTUNE_FILES
#include "account.h"
#include "attune_bpf.h"
#include "kernel_types.h"
#include "registers.h"

const char program_license[] SEC("license") = "GPL";

struct file_key {
    u64 inode;
    u32 device; /* as the kernel numbers it: 12 bits, 20 bits */
    u32 generation;
};

struct file_account {
    u64 read_bytes;
    u64 written_bytes;
    u64 read_calls;
    u64 written_calls;
    u64 sent_bytes;     /* of read_bytes: by sendfile, splice, copy_file_range    */
    u64 received_bytes; /* of written_bytes: likewise                            */
    u64 opens;
    u64 executions;
    u64 maps;
    u32 mode;
    u32 named;
};

#define NAME_SIZE 256
#define PATH_SIZE 4096

/* Names of a path, the last one first, each with a 0 at its end. */
struct file_name {
    struct file_key key;
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

const struct file_account *unused_file_account __attribute__((unused));
const struct file_name *unused_file_name __attribute__((unused));

struct file_totals file_totals;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, struct file_key);
    __type(value, struct file_account);
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

INLINE bool followed(void) {
    s32 tgid = bpf_get_current_pid_tgid() >> 32;

    return bpf_map_lookup_elem(&processes, &tgid) != 0;
}

INLINE struct mount *mount_of(struct vfsmount *inner) {
    return (void *)inner - __builtin_preserve_field_info(((struct mount *)0)->mnt, 0);
}

#define PATH_STEPS 256

struct walk {
    struct dentry *at, *root;
    struct vfsmount *in, *root_mount;
    u64 length;
    u32 whole; /* the root was reached */
};

/* One step from a file to its root: 1 ends the walk. */
static long walk_up(__attribute__((unused)) u32 step, struct walk *walk) {
    u32 first = 0;
    struct file_name *name = bpf_map_lookup_elem(&scratch, &first);
    struct dentry *parent = READ(walk->at, d_parent);
    struct mount *mount = mount_of(walk->in), *above = READ(mount, mnt_parent);
    bool top = walk->at == READ(walk->in, mnt_root);
    u64 length = walk->length;
    long size;

    /* The process' root, the last mount, or a root that is mounted nowhere. */
    walk->whole = (walk->at == walk->root && walk->in == walk->root_mount) ||
                  (top && (above == mount || !above)) || (!top && walk->at == parent);
    if (walk->whole)
        return 1;
    if (top) {
        walk->at = READ(mount, mnt_mountpoint);
        walk->in = &above->mnt;
        return 0;
    }
    TELL_VERIFIER(length);
    if (!name || length >= PATH_SIZE)
        return 1;
    size = bpf_probe_read_kernel_str(name->text + length, NAME_SIZE, READ(walk->at, d_name.name));
    if (size <= 0)
        return 1;
    walk->length = length + size;
    walk->at = parent;
    return 0;
}

/*
 * Hands over the name of a file, as d_path() in the kernel finds it. Returns 0 if
 * that was done. Like others below it is no static function, so that the verifier
 * looks at it by itself, and its parameters are numbers.
 */
NOINLINE int tell_name(u64 file_at, u64 inode, u32 device, u32 generation) {
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
    bpf_loop(PATH_STEPS, walk_up, &walk, 0);
    name->key.inode = inode;
    name->key.device = device;
    name->key.generation = generation;
    name->whole = walk.whole;
    name->length = walk.length;
    length = walk.length + __builtin_offsetof(struct file_name, text);
    TELL_VERIFIER(length);
    if (length > sizeof(*name))
        return -1;
    return bpf_ringbuf_output(&name_ring, name, length, BPF_RB_NO_WAKEUP);
}

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define PIPEFS_MAGIC 0x50495045
#define ANON_INODE_FS_MAGIC 0x09041934

/* The account of a file; 0: it is none that has a name, or there is no room. */
INLINE struct file_account *account_of(struct file *file, struct inode *inode, u32 mode) {
    struct super_block *device = READ(inode, i_sb);
    struct file_key key = {
        .inode = READ(inode, i_ino),
        .device = READ(device, s_dev),
        .generation = READ(inode, i_generation),
    };
    struct file_account *account = bpf_map_lookup_elem(&files, &key), fresh = {.mode = mode};
    u64 magic;

    if (!account) {
        magic = READ(device, s_magic);
        if (magic == PIPEFS_MAGIC || magic == ANON_INODE_FS_MAGIC || !(mode & S_IFMT))
            return 0;
        bpf_map_update_elem(&files, &key, &fresh, BPF_NOEXIST); /* another CPU may have */
        account = bpf_map_lookup_elem(&files, &key);
        if (!account) {
            __sync_fetch_and_add(&file_totals.lost_calls, 1);
            return 0;
        }
    }
    if (!account->named && !__sync_val_compare_and_swap(&account->named, 0, 1) &&
        tell_name((u64)file, key.inode, key.device, key.generation))
        account->named = 0; /* at its next use, then */
    return account;
}

#define AF_INET 2
#define AF_INET6 10

INLINE bool of_network(struct file *file) {
    struct socket *socket = READ(file, private_data);
    u16 family = READ(READ(socket, sk), __sk_common.skc_family);

    return family == AF_INET || family == AF_INET6;
}

INLINE struct file *file_of(u32 fd) {
    struct task_struct *task = bpf_get_current_task_btf();
    struct fdtable *table = task->files->fdt; /* loads that need no helper */
    struct file *file = 0;

    if (fd < table->max_fds)
        bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
    return file;
}

enum what { READS = 1, WRITES = 2, MOVES = 4, OPENS = 8, MAPS = 16 };

NOINLINE int count(u32 fd, u64 bytes, u32 what) {
    struct file *file = file_of(fd);
    struct inode *inode = READ(file, f_inode);
    u32 mode = READ(inode, i_mode);
    struct file_account *account;

    if ((mode & S_IFMT) == S_IFSOCK) {
        if (of_network(file))
            __sync_fetch_and_add(what & READS ? &file_totals.received : &file_totals.sent, bytes);
        return 0;
    }
    if (!file || !(account = account_of(file, inode, mode)))
        return 0;
    if (what & READS) {
        __sync_fetch_and_add(&account->read_bytes, bytes);
        __sync_fetch_and_add(&account->read_calls, 1);
        if (what & MOVES)
            __sync_fetch_and_add(&account->sent_bytes, bytes);
    } else if (what & WRITES) {
        __sync_fetch_and_add(&account->written_bytes, bytes);
        __sync_fetch_and_add(&account->written_calls, 1);
        if (what & MOVES)
            __sync_fetch_and_add(&account->received_bytes, bytes);
    } else if (what & OPENS) {
        __sync_fetch_and_add(&account->opens, 1);
    } else {
        __sync_fetch_and_add(&account->maps, 1);
    }
    return 0;
}

/* struct mmsghdr of 64-bit programs. */
#define MESSAGE_SIZE 64
#define MESSAGE_LENGTH_AT 56
#define MOST_MESSAGES 1024

NOINLINE u64 message_bytes(u64 at, u32 messages) {
    u64 sum = 0;
    u32 length;

    for (u32 i = 0; i < MOST_MESSAGES && i < messages; i++) {
        length = 0;
        if (bpf_probe_read_user(&length, sizeof(length),
                                (void *)(at + i * MESSAGE_SIZE + MESSAGE_LENGTH_AT)))
            __sync_fetch_and_add(&file_totals.lost_calls, 1);
        sum += length;
    }
    return sum;
}

#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000
#define NOT_TAKEN (MSG_PEEK | MSG_ERRQUEUE)
#define MAP_ANONYMOUS 0x20
#define TS_COMPAT 0x2 /* a system call of a 32-bit program */

#define CALL(name) READ(regs, name)

SEC("raw_tp/sys_exit")
int files_call(u64 *ctx) {
    s64 result = ctx[1];
    struct registers *regs = (struct registers *)ctx[0];

    if (result < 0 || !followed())
        return 0;
    if (((struct task_struct *)bpf_get_current_task_btf())->thread_info.status & TS_COMPAT) {
        __sync_fetch_and_add(&file_totals.unseen, 1);
        return 0;
    }
    switch (CALL(orig_ax)) {
    case 0:   /* read */
    case 17:  /* pread64 */
    case 19:  /* readv */
    case 295: /* preadv */
    case 327: /* preadv2 */
        return count(CALL(di), result, READS);
    case 1:   /* write */
    case 18:  /* pwrite64 */
    case 20:  /* writev */
    case 296: /* pwritev */
    case 328: /* pwritev2 */
        return count(CALL(di), result, WRITES);
    case 44: /* sendto */
    case 46: /* sendmsg */
        return count(CALL(di), result, WRITES);
    case 307: /* sendmmsg */
        return count(CALL(di), message_bytes(CALL(si), result), WRITES);
    case 45: /* recvfrom */
        return CALL(r10) & NOT_TAKEN ? 0 : count(CALL(di), result, READS);
    case 47: /* recvmsg */
        return CALL(dx) & NOT_TAKEN ? 0 : count(CALL(di), result, READS);
    case 299: /* recvmmsg */
        if (CALL(r10) & NOT_TAKEN)
            return 0;
        return count(CALL(di), message_bytes(CALL(si), result), READS);
    case 40: /* sendfile */
        count(CALL(si), result, READS | MOVES);
        return count(CALL(di), result, WRITES | MOVES);
    case 275: /* splice */
    case 326: /* copy_file_range */
        count(CALL(di), result, READS | MOVES);
        return count(CALL(dx), result, WRITES | MOVES);
    case 2:   /* open */
    case 85:  /* creat */
    case 257: /* openat */
    case 304: /* open_by_handle_at */
    case 437: /* openat2 */
        return count(result, 0, OPENS);
    case 9: /* mmap */
        return CALL(r10) & MAP_ANONYMOUS ? 0 : count(CALL(r8), 0, MAPS);
    case 206: /* io_setup */
    case 425: /* io_uring_setup */
        __sync_fetch_and_add(&file_totals.unseen, 1);
    }
    return 0;
}

SEC("raw_tp/sched_process_exec")
int files_exec(u64 *ctx) {
    struct linux_binprm *program = (struct linux_binprm *)ctx[2];
    struct file *file = READ(program, file);
    struct inode *inode = READ(file, f_inode);
    struct file_account *account;

    if (followed() && (account = account_of(file, inode, READ(inode, i_mode))))
        __sync_fetch_and_add(&account->executions, 1);
    return 0;
}
