/* SPDX-License-Identifier: Apache-2.0 */
/* Executes argv[2] under a seccomp filter, which kills for the system calls whose numbers
 * are in argv[1], with commas between them, and allows all others. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST 30

int main(int argc, char **argv) {
    struct sock_filter filter[2 * MOST + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    if (argc < 3)
        return 1;
    for (char *at = argv[1]; *at != '\0' && length < 2 * MOST; at += *at == ',') {
        unsigned number = (unsigned)strtoul(at, &at, 10);
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 1;
    execv(argv[2], argv + 2);
    return 1;
}
