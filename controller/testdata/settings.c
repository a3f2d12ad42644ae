/* SPDX-License-Identifier: Apache-2.0 */
/* Comes to an allocation hook all the time, and answers what its libraries say
 * about themselves. It is linked with one of several run-times and allocators,
 * which is why it looks their functions up. After "fork" a child answers until
 * its input ends. */
#include <dlfcn.h>
#include <malloc.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int members;

static void member(void *unused) {
    (void)unused;
    __atomic_add_fetch(&members, 1, __ATOMIC_RELAXED);
}

/* How many threads a parallel region has. */
static long team(void) {
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned) =
        (void (*)(void (*)(void *), void *, unsigned, unsigned))dlsym(RTLD_DEFAULT,
                                                                      "GOMP_parallel");
    members = 0;
    parallel(member, NULL, 0, 0);
    return members;
}

static long control(const char *name) {
    int (*mallctl)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    long value = 0;
    size_t size = strcmp(name, "background_thread") == 0 ? 1
                  : strcmp(name, "arenas.create") == 0   ? 4
                                                         : sizeof(value);
    return mallctl(name, &value, &size, NULL, 0) == 0 ? value : -2;
}

static long property(const char *name) {
    int (*get)(const char *, size_t *) =
        (int (*)(const char *, size_t *))dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    size_t value;
    return get(name, &value) ? (long)value : -2;
}

/* The child says its number; the process ends with it. */
static long fork_child(void) {
    pid_t child = fork();
    if (child != 0) {
        waitpid(child, NULL, 0);
        _exit(0);
    }
    return getpid();
}

static long answer(char *line) {
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "fork") == 0)
        return fork_child();
    char *name = strchr(line, ' ');
    if (name != NULL)
        *name++ = '\0';
    if (strcmp(line, "team") == 0)
        return team();
    if (strcmp(line, "mallctl") == 0)
        return control(name);
    if (strcmp(line, "property") == 0)
        return property(name);
    int (*get)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, line);
    return get();
}

/* Where the program is: 1 when it calls tick(), 2 when that returns, else 0. */
static volatile long phase;

long phase_now(void) { return phase; }

__attribute__((noinline)) void tick(void) {
    void *volatile block = malloc(100);
    free(block);
    phase = 2;
}

__attribute__((noinline)) void never(void) { phase = 3; }

int main(void) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[200];

    setvbuf(stdin, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    for (;;) {
        phase = 1;
        tick();
        phase = 0;
        if (poll(&in, 1, 1) == 0)
            continue;
        if (fgets(line, sizeof(line), stdin) == NULL)
            return 0;
        printf("%ld\n", answer(line));
    }
}
