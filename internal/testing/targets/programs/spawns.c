/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: vfork. A thread executes one program after the other; with
 * argv[1], milliseconds, it has one child that lives for so long in the memory
 * of its parent, and then no more. With "alone" there is no other thread: the
 * program is ready, and then has that child before it reads a line. */
#include "target.h"
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static struct timespec life;

static void spawn(void) {
    int status = -1;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        is_wrong();
}

static void *spawning(void *unused) {
    (void)unused;
    return forever(spawn);
}

static void slow(void) {
    pid_t child = vfork();
    if (child == 0) {
        syscall(SYS_nanosleep, &life, NULL);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        is_wrong();
}

static void *slow_once(void *unused) {
    slow();
    return computing(unused);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        long milliseconds = atol(argv[1]);
        life = (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000};
        target_stands_still = 1;
        if (argc > 2)
            target_begin = slow;
        else
            begin(slow_once, 0);
    } else {
        begin(spawning, 0);
        begin(computing, 0);
    }
    return target_serve(argv);
}
