/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a seccomp filter kills the process for one system call, argv[1]:
 * in all threads; with "one" in the first thread only; with "later" in all of
 * them from the moment on at which the program is first asked to check. */
#include "target.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static unsigned number;

static void forbid(unsigned flags) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0)
        is_wrong();
}

/* Between lines the program is asked whether it is right. */
static void forbid_once(void) {
    static int done;
    if (!done)
        forbid(SECCOMP_FILTER_FLAG_TSYNC);
    done = 1;
}

static void allocate(void) {
    void *volatile block = malloc(1000); /* comes by a hook */
    free(block);
}

static void *allocating(void *unused) {
    (void)unused;
    return forever(allocate);
}

int main(int argc, char **argv) {
    const char *when = argc > 2 ? argv[2] : "";
    if (argc < 2)
        return 1;
    number = (unsigned)atoi(argv[1]);
    if (strcmp(when, "later") == 0) {
        target_look = forbid_once;
        begin(allocating, 0);
        while (target_steps == 0) /* it may be about to make a call that is forbidden */
            usleep(1000);
    } else if (strcmp(when, "one") == 0) {
        begin(allocating, 0);
        forbid(0);
    } else {
        forbid(0);
        begin(allocating, 0);
    }
    return target_serve(argv);
}
