/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine CAPABILITIES UMASK FILTER DIRECTORY... -- PROGRAM [ARGUMENT...]
 *
 * Executes a program with what its unit leaves to it: capabilities (hexadecimal),
 * a seccomp filter (a file), and a file system that it can write to in some
 * directories only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void must(int result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
        exit(125);
    }
}

static void set_readonly(const char *path, int on) {
    struct mount_attr attr = {0};

    if (on)
        attr.attr_set = MOUNT_ATTR_RDONLY;
    else
        attr.attr_clr = MOUNT_ATTR_RDONLY;
    must((int)syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attr, sizeof(attr)), path);
}

static void bind_itself(const char *path) {
    must(mount(path, path, NULL, MS_BIND | MS_REC, NULL), path);
}

/* As ProtectSystem=strict and ProtectKernelTunables=yes. */
static void protect_files(char **writable) {
    must(unshare(CLONE_NEWNS), "unshare");
    must(mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL), "slave");
    bind_itself("/proc/sys");
    for (char **path = writable; *path != NULL; path++)
        bind_itself(*path);
    set_readonly("/", 1);
    set_readonly("/proc", 0);
    set_readonly("/dev", 0);
    set_readonly("/proc/sys", 1);
    for (char **path = writable; *path != NULL; path++)
        set_readonly(*path, 0);
}

static void drop(unsigned long long keep) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (!(keep >> cap & 1))
            must(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), "bounding set");
    must((int)syscall(SYS_capget, &header, data), "capget");
    for (int half = 0; half < 2; half++) {
        data[half].permitted &= (unsigned)(keep >> 32 * half);
        data[half].effective = data[half].permitted;
        data[half].inheritable = 0;
    }
    must((int)syscall(SYS_capset, &header, data), "capset");
}

static void load_filter(const char *path) {
    static struct sock_filter code[4096];
    struct sock_fprog program = {.filter = code};
    FILE *file = fopen(path, "r");

    must(file == NULL ? -1 : 0, path);
    program.len = (unsigned short)fread(code, sizeof(code[0]), 4096, file);
    fclose(file);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), "seccomp");
}

int main(int argc, char **argv) {
    int end = 4;

    while (end < argc && strcmp(argv[end], "--") != 0)
        end++;
    if (end + 1 >= argc)
        return 125;
    argv[end] = NULL;
    if (geteuid() == 0)
        protect_files(&argv[4]);
    umask((mode_t)strtoul(argv[2], NULL, 8));
    if (geteuid() == 0)
        drop(strtoull(argv[1], NULL, 16));
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
    load_filter(argv[3]);
    execv(argv[end + 1], &argv[end + 1]);
    must(-1, argv[end + 1]);
}
