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
#include "file_accounts.h"
#include "kernel_types.h"
#include "registers.h"

const char program_license[] SEC("license") = "GPL";

/*
 * Numbers of these types in the kernel's type information, with which objects are read
 * without calls of helpers, which take most of the time: from Linux 6.2 on, else 0.
 */
const volatile u32 task_type = 0;
const volatile u32 file_type = 0;
const volatile u32 registers_type = 0; /* struct pt_regs                         */
const volatile u32 pointer_type = 0;   /* struct hlist_head, which is a pointer  */

struct pointer {
    u64 to;
};

/* A member of an object that is a kernel's of that type. */
#define LOOK(type, object, member)                                                                 \
    (type ? ((typeof(object))bpf_rdonly_cast(object, type))->member : READ(object, member))

/* A power of 2; a call's files are looked for by its descriptor. */
#define RECENT_FILES 16

struct recent_file {
    struct file_key key;
    u32 at;
    u32 known;
};

enum what { READS = 1, WRITES = 2, MOVES = 4, OPENS = 8, MAPS = 16 };

/* A call on a descriptor that was done. */
struct done {
    u64 bytes;
    u32 fd;
    u32 what;
};

/*
 * Who called last on a CPU, and which files were used there. What is true of a thread
 * or a file is true as long as it lives; others at the same address differ in
 * the time of their start, or in the key.
 */
struct recent {
    u64 thread;
    u64 start_time;
    u64 followed;
    volatile u64 file;         /* see number_of()                                 */
    volatile struct done done; /* here the verifier does not follow each value    */
    struct recent_file files[RECENT_FILES];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct recent);
} recents SEC(".maps");

INLINE struct recent *recent_here(void) {
    u32 first = 0;

    return bpf_map_lookup_elem(&recents, &first);
}

INLINE bool followed(void) {
    s32 tgid = bpf_get_current_pid_tgid() >> 32;

    return bpf_map_lookup_elem(&processes, &tgid) != 0;
}

/* followed(), which is asked once for each time that a thread is on a CPU. */
INLINE bool followed_here(struct recent *recent, struct task_struct *task) {
    u64 start_time = task->start_boottime;

    if (recent->thread != (u64)task || recent->start_time != start_time) {
        recent->thread = (u64)task;
        recent->start_time = start_time;
        recent->followed = followed();
    }
    return recent->followed;
}

INLINE struct file *file_of(struct task_struct *task, u32 fd) {
    struct fdtable *table;
    struct file *file = 0;

    /* Of a pointer that it trusts the verifier looks for each member among 100,000 types. */
    if (task_type)
        task = bpf_rdonly_cast(task, task_type);
    table = task->files->fdt;

    if (fd >= table->max_fds)
        return 0;
    if (pointer_type)
        return (struct file *)((struct pointer *)bpf_rdonly_cast(table->fd + fd, pointer_type))->to;
    bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
    return file;
}

/* The address as a number, for functions that the verifier looks at by themselves. */
INLINE u64 number_of(struct recent *recent, struct file *file) {
    recent->file = (u64)file;
    return recent->file;
}

/* Where a file is in file_accounts, or what it is else. */
INLINE u32 at_recent(struct recent *recent, struct file *file, u32 fd) {
    struct recent_file *last = &recent->files[fd % RECENT_FILES];
    struct file_key key;

    if (file_type) {
        struct inode *inode = ((struct file *)bpf_rdonly_cast(file, file_type))->f_inode;

        key.inode = inode->i_ino;
        key.device = inode->i_sb->s_dev;
        key.generation = inode->i_generation;
    } else {
        read_key(file, &key);
    }
    if (!last->known || last->key.inode != key.inode || last->key.device != key.device ||
        last->key.generation != key.generation) {
        last->key = key;
        last->at = at_file(number_of(recent, file));
        last->known = last->at != AT_LOST;
    }
    return last->at;
}

INLINE void count_network(u64 bytes, u32 what) {
    if (what & READS)
        __sync_fetch_and_add(&file_totals.received, bytes);
    else if (what & WRITES)
        __sync_fetch_and_add(&file_totals.sent, bytes);
}

INLINE void count_file(struct file_account *account, u64 bytes, u32 what) {
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
        __sync_fetch_and_add(&account->mapped_bytes, bytes);
        __sync_fetch_and_add(&account->maps, 1);
    }
}

INLINE void count(struct recent *recent, struct task_struct *task) {
    u32 fd = recent->done.fd, at;
    struct file *file = file_of(task, fd);
    struct file_account *account;

    if (!file)
        return;
    at = at_recent(recent, file, fd);
    if (at == AT_NOTHING)
        return;
    account = account_at(at);
    if (account) {
        if (!account->named)
            name_account(account, number_of(recent, file), at);
        count_file(account, recent->done.bytes, recent->done.what);
    } else if (at == AT_NETWORK) {
        count_network(recent->done.bytes, recent->done.what);
    } else {
        __sync_fetch_and_add(&file_totals.lost_calls, 1);
    }
}

/* The one of two that a call moves bytes from. */
NOINLINE int count_source(u32 fd, u64 bytes) {
    struct recent *recent = recent_here();

    if (!recent)
        return 0;
    recent->done.fd = fd;
    recent->done.bytes = bytes;
    recent->done.what = READS | MOVES;
    count(recent, bpf_get_current_task_btf());
    return 0;
}

/* struct mmsghdr of 64-bit programs. */
#define MESSAGE_SIZE 64
#define MESSAGE_LENGTH_AT 56
#define MOST_MESSAGES 1024

/* What a message has moved. */
NOINLINE int message_length(u64 at) {
    u32 length = 0;

    if (bpf_probe_read_user(&length, sizeof(length), (void *)(at + MESSAGE_LENGTH_AT)))
        __sync_fetch_and_add(&file_totals.lost_calls, 1);
    return length;
}

/* What sendmmsg or recvmmsg moved. */
INLINE u64 message_bytes(u64 at, u32 count) {
    u64 bytes = 0;

    for (u32 i = 0; i < MOST_MESSAGES && i < count; i++)
        bytes += (u32)message_length(at + i * MESSAGE_SIZE);
    return bytes;
}

#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000
#define NOT_TAKEN (MSG_PEEK | MSG_ERRQUEUE)
#define MAP_ANONYMOUS 0x20
#define TS_COMPAT 0x2 /* a system call of a 32-bit program */

#define CALL(name) LOOK(registers_type, regs, name)
#define DONE(fd_, bytes_, what_)                                                                   \
    do {                                                                                           \
        done->fd = (fd_);                                                                          \
        done->bytes = (bytes_);                                                                    \
        done->what = (what_);                                                                      \
        return true;                                                                               \
    } while (0)

/* Says what a call did; false: nothing that is counted. */
INLINE bool tell_done(struct registers *regs, u64 result, volatile struct done *done) {
    switch (CALL(orig_ax)) {
    case 0:   /* read */
    case 17:  /* pread64 */
    case 19:  /* readv */
    case 295: /* preadv */
    case 327: /* preadv2 */
        DONE(CALL(di), result, READS);
    case 1:   /* write */
    case 18:  /* pwrite64 */
    case 20:  /* writev */
    case 296: /* pwritev */
    case 328: /* pwritev2 */
    case 44:  /* sendto */
    case 46:  /* sendmsg */
        DONE(CALL(di), result, WRITES);
    case 307: /* sendmmsg */
        DONE(CALL(di), message_bytes(CALL(si), result), WRITES);
    case 45: /* recvfrom */
        if (CALL(r10) & NOT_TAKEN)
            return false;
        DONE(CALL(di), result, READS);
    case 47: /* recvmsg */
        if (CALL(dx) & NOT_TAKEN)
            return false;
        DONE(CALL(di), result, READS);
    case 299: /* recvmmsg */
        if (CALL(r10) & NOT_TAKEN)
            return false;
        DONE(CALL(di), message_bytes(CALL(si), result), READS);
    case 40: /* sendfile */
        count_source(CALL(si), result);
        DONE(CALL(di), result, WRITES | MOVES);
    case 275: /* splice */
    case 326: /* copy_file_range */
        count_source(CALL(di), result);
        DONE(CALL(dx), result, WRITES | MOVES);
    case 2:   /* open */
    case 85:  /* creat */
    case 257: /* openat */
    case 304: /* open_by_handle_at */
    case 437: /* openat2 */
        DONE(result, 0, OPENS);
    case 9: /* mmap */
        if (CALL(r10) & MAP_ANONYMOUS)
            return false;
        DONE(CALL(r8), CALL(si), MAPS);
    case 206: /* io_setup */
    case 425: /* io_uring_setup */
        __sync_fetch_and_add(&file_totals.unseen, 1);
    }
    return false;
}

SEC("raw_tp/sys_exit")
int files_call(u64 *ctx) {
    s64 result = ctx[1];
    struct task_struct *task = bpf_get_current_task_btf();
    struct recent *recent = recent_here();

    if (result < 0 || !recent || !followed_here(recent, task))
        return 0;
    if (task->thread_info.status & TS_COMPAT) {
        __sync_fetch_and_add(&file_totals.unseen, 1);
        return 0;
    }
    if (tell_done((struct registers *)ctx[0], result, &recent->done))
        count(recent, task);
    return 0;
}

SEC("raw_tp/sched_process_exec")
int files_exec(u64 *ctx) {
    struct linux_binprm *program = (struct linux_binprm *)ctx[2];
    u64 file = (u64)READ(program, file);
    struct file_account *account;
    u32 at;

    if (!followed())
        return 0;
    at = at_file(file);
    account = account_at(at);
    if (!account)
        return 0;
    name_account(account, file, at);
    __sync_fetch_and_add(&account->executions, 1);
    return 0;
}
