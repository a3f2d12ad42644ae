// SPDX-License-Identifier: Apache-2.0
/*
 * A tree of short processes: argv[1] children, of which child i
 *   i % 5 == 0: executes /bin/true
 *   i % 5 == 1: ends with exit status i % 256
 *   i % 5 == 2: is killed by SIGKILL
 *   i % 5 == 3: has one child of its own, which ends with status 7
 *   i % 5 == 4: has two more threads; the first thread ends before them
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread(void *unused) {
    usleep(500);
    syscall(SYS_exit, 3); /* which thread's status counts differs by kernel */
    return unused;
}

static void child(int i) {
    pthread_t id;
    int status;

    switch (i % 5) {
    case 0:
        execl("/bin/true", "true", (char *)NULL);
        _exit(99);
    case 1:
        _exit(i % 256);
    case 2:
        raise(SIGKILL);
        break;
    case 3:
        if (fork() == 0)
            _exit(7);
        wait(&status);
        _exit(0);
    case 4:
        pthread_create(&id, NULL, thread, NULL);
        pthread_create(&id, NULL, thread, NULL);
        syscall(SYS_exit, 3); /* ends this thread only */
    }
    _exit(98);
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;

    for (int i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid == 0)
            child(i);
        if (pid < 0 || (i % 8 == 7 && wait(NULL) < 0))
            return 1;
    }
    while (wait(NULL) > 0)
        ;
    return 42;
}
