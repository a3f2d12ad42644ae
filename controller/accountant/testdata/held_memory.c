/* SPDX-License-Identifier: Apache-2.0 */
/* held_memory MB fork|vfork|second: reads as many bytes as it holds in memory until the input ends,
 * with a child that does nothing else until then: one of fork, or one of vfork, which has its
 * parent's. Or its second thread holds it, and the first one, which has read them, has ended. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_t first;

static void say_ready(void) {
    puts("ready");
    fflush(stdout);
}

static void await_end(void) {
    char byte;

    while (read(0, &byte, 1) > 0)
        ;
}

static void *go_on(void *unused) {
    pthread_join(first, NULL);
    say_ready();
    await_end();
    exit(0);
    return unused;
}

int main(int argc, char **argv) {
    size_t bytes = (argc > 2 ? atoi(argv[1]) : 0) * 1000000ul;
    char *memory = malloc(bytes), *how = argc > 2 ? argv[2] : "";
    int zero = open("/dev/zero", O_RDONLY);
    pthread_t second;
    pid_t child;

    if (memory == NULL || zero < 0 || read(zero, memory, bytes) != (ssize_t)bytes)
        return 1;
    memset(memory, 1, bytes);
    if (!strcmp(how, "second")) {
        first = pthread_self();
        if (pthread_create(&second, NULL, go_on, NULL) != 0)
            return 1;
        pthread_exit(NULL);
    }
    say_ready();
    child = !strcmp(how, "vfork") ? vfork() : fork();
    if (child == 0) {
        await_end();
        execlp("true", "true", NULL);
        _exit(1);
    }
    return child < 0 || waitpid(child, NULL, 0) != child || memory[bytes / 2] != 1;
}
