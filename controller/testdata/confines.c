/* SPDX-License-Identifier: Apache-2.0 */
/* A child takes over, with argv[1] "confined" under a seccomp filter that kills for
 * what is not needed here, with "elsewhere" in the root directory argv[2]. For each line with a
 * number it allocates so many times and says who it is. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void confine(void) {
    static const unsigned allowed[] = {SYS_read, SYS_write,  SYS_exit_group, SYS_brk,
                                       SYS_mmap, SYS_munmap, SYS_newfstatat};
    enum { COUNT = sizeof allowed / sizeof allowed[0] };
    struct sock_filter filter[2 * COUNT + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    for (int i = 0; i < COUNT; i++) {
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(8);
}

int main(int argc, char **argv) {
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    void *volatile first = malloc(1);
    free(first);
    pid_t child = fork();
    if (child != 0) {
        int status = -1;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
    }
    int self = (int)getpid();
    if (argc > 1 && strcmp(argv[1], "confined") == 0)
        confine();
    if (argc > 2 && strcmp(argv[1], "elsewhere") == 0 && (chroot(argv[2]) != 0 || chdir("/") != 0))
        _exit(8);
    while (fgets(line, sizeof line, stdin)) {
        for (long n = strtol(line, NULL, 10); n > 0; n--) {
            void *volatile block = malloc(100);
            free(block);
        }
        printf("%d\n", self);
    }
    return 0;
}
