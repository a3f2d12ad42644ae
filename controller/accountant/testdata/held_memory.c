/* SPDX-License-Identifier: Apache-2.0 */
/* held_memory MB fork|vfork|second|second-fork|second-vfork|both: reads as many bytes as it holds
 * in memory until the input ends, with a child that does nothing else until then: one of fork, or
 * one of vfork, which has its parent's. With "second" its second thread holds it, and has the child
 * if there is one: the first one, which has read them, has ended; with "both" that of a child of
 * fork has ended, too. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t bytes;
static char *memory;
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

static void *outlive(void *unused) {
    pthread_join(first, NULL);
    await_end();
    _exit(0);
    return unused;
}

/* go_on_in goes on in a second thread, when the first one has ended. */
static void go_on_in(void *(*second)(void *), const char *how) {
    pthread_t thread;

    first = pthread_self();
    if (pthread_create(&thread, NULL, second, (void *)how) != 0)
        _exit(1);
    pthread_exit(NULL);
}

static int hold(const char *how) {
    pid_t child;

    say_ready();
    if (!strcmp(how, "second")) {
        await_end();
        return 0;
    }
    child = strstr(how, "vfork") != NULL ? vfork() : fork();
    if (child == 0) {
        if (!strcmp(how, "both"))
            go_on_in(outlive, how);
        await_end();
        execlp("true", "true", NULL);
        _exit(1);
    }
    return child < 0 || waitpid(child, NULL, 0) != child || memory[bytes / 2] != 1;
}

static void *go_on(void *how) {
    pthread_join(first, NULL);
    exit(hold(how));
    return NULL;
}

int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[2] : "";
    int zero = open("/dev/zero", O_RDONLY);

    bytes = (argc > 2 ? atoi(argv[1]) : 0) * 1000000ul;
    memory = malloc(bytes);
    if (memory == NULL || zero < 0 || read(zero, memory, bytes) != (ssize_t)bytes)
        return 1;
    memset(memory, 1, bytes);
    if (!strncmp(how, "second", 6) || !strcmp(how, "both"))
        go_on_in(go_on, how);
    return hold(how);
}
